"""Arrow columns of texts in the form of views, which most of Arrow's functions do not take; frames of polars have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tocsin.formats.arrow_leaves import with_leaves


def without_views(table: Any) -> Any:
    """Return a table or record batch with views of texts as large strings; one that has none is returned itself."""
    return with_leaves(table, _as_texts, _is_view)


def _is_view(kind: Any) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string_view(inner))


def _as_texts(array: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        words = array.dictionary.cast(pa.large_string())
        return pa.DictionaryArray.from_arrays(array.indices, words)
    return array.cast(pa.large_string())
