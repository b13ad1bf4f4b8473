"""HTML for notebooks: a box with its own colours, light and dark, that holds tables, trees and pictures.

All text is escaped: the texts of subscriptions and the values of events come from anywhere.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from tocsin.display.text import shortened

_IMPOSSIBLE: Final = re.compile("[^\\t\\n\\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CELL: Final = 120  # characters of a cell

# Each rule begins with the box's class, and the box has a background, so that a notebook's own colours do not matter.
_STYLE: Final = """
.tocsin{color-scheme:light dark;color:#1f2933;background:#fff;border:1px solid #d9dee3;border-radius:6px;padding:10px 14px;
display:inline-block;max-width:100%;box-sizing:border-box;overflow-x:auto;font:13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
.tocsin p{margin:2px 0}.tocsin .head{font-weight:600;margin:0 0 6px}.tocsin .good{color:#18794e}.tocsin .bad{color:#c62a2f}
.tocsin .unknown{color:#946800}.tocsin .quiet{color:#6b7280}.tocsin .strong{font-weight:600}.tocsin .count{color:#1d5fa0}
.tocsin table{border-collapse:collapse;margin:0;color:inherit;background:none;font-size:12.5px}
.tocsin th,.tocsin td{text-align:left;padding:3px 14px 3px 0;border:0;border-bottom:1px solid #e8ebee;vertical-align:top;white-space:nowrap;background:none}
.tocsin td{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,monospace;font-size:12px}
.tocsin tr:last-child td{border-bottom:0}.tocsin .number{text-align:right;font-variant-numeric:tabular-nums}
.tocsin .tree,.tocsin .mono{font:12.5px/1.6 ui-monospace,'DejaVu Sans Mono',Menlo,monospace;white-space:pre-wrap}
.tocsin ul{list-style:none;margin:0 0 0 5px;padding:0;border-left:1px solid #ccd3da}.tocsin li{margin:0;padding:0 0 0 16px;position:relative}
.tocsin li::before{content:'';position:absolute;left:0;top:.8em;width:11px;border-top:1px solid #ccd3da}
.tocsin img{display:block;max-width:100%;height:auto;margin:0 0 8px}.tocsin summary{cursor:pointer}
.tocsin .bar{fill:#2f6fab}.tocsin .axis{stroke:#9aa5b1;stroke-width:1}.tocsin .grid{stroke:#e8ebee;stroke-width:1}
.tocsin svg text{font:11px system-ui,sans-serif;fill:#52606d}.tocsin svg{display:block;max-width:100%}
@media (prefers-color-scheme:dark){.tocsin{color:#e4e7eb;background:#14181d;border-color:#2f3943}
.tocsin .good{color:#4cc38a}.tocsin .bad{color:#ff8589}.tocsin .unknown{color:#f0b429}.tocsin .quiet{color:#9aa5b1}.tocsin .count{color:#6cb2eb}
.tocsin th,.tocsin td{border-bottom-color:#29323b}.tocsin ul{border-left-color:#3e4a56}.tocsin li::before{border-top-color:#3e4a56}
.tocsin .bar{fill:#6cb2eb}.tocsin .axis{stroke:#7b8794}.tocsin .grid{stroke:#29323b}.tocsin svg text{fill:#cbd2d9}}
"""


def escaped(text: object) -> str:
    """Return a text as HTML and XML take it anywhere; characters that they do not allow are replaced."""
    return escape(_IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def box(*content: str) -> str:
    """Return HTML in a box with its style."""
    return f'<div class="tocsin"><style>{_STYLE}</style>{"".join(content)}</div>'


def head(text: str) -> str:
    """Return a heading."""
    return f'<p class="head">{escaped(text)}</p>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object] | None]) -> str:
    """Return a table; None among the rows says that some are left out there. Numbers are at the right."""
    heads = "".join(f"<th>{escaped(name)}</th>" for name in columns)
    lines = (
        "".join(map(_cell, row)) if row is not None else f'<td class="quiet" colspan="{len(columns)}">⋮</td>'
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = "" if value is None else f"{value:,}" if is_number else str(value)
    kind = ' class="number"' if is_number else ""
    return f"<td{kind}>{escaped(shortened(text, _CELL))}</td>"


def picture(svg: str, description: str) -> str:
    """Return a drawing as an image, whose style does not leave it and in which nothing is executed."""
    data = b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{escaped(description)}">'


def details(title: str, content: str) -> str:
    """Return content that is shown when somebody opens it."""
    return f"<details><summary>{escaped(title)}</summary>{content}</details>"
