"""One name for one thing: no two public classes of Tocsin share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import tocsin

PACKAGE = Path(tocsin.__file__).parent

# A class may share its name only for one of these reasons.
SHARED: dict[str, str] = {
    "Next": "the query's clause (model) and the algebra's operator that it is translated to are both the paper's NEXT",
}


def public_classes() -> dict[str, list[str]]:
    """Return the modules that define each public class.

    The arrays of a kernel's state are left out: every index has its `State`, and only its own package reads it.
    """
    found = defaultdict(list)
    for source in sorted(PACKAGE.rglob("*.py")):
        path = source.relative_to(PACKAGE)
        if "_kernels" in path.parts or path.stem == "state":
            continue
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.as_posix())
    return dict(found)


def test_no_two_public_classes_share_a_name_without_reason() -> None:
    classes = public_classes()
    assert len(classes) > 300
    shared = {name: places for name, places in classes.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED} == {}
    assert sorted(SHARED) == sorted(shared), "a reason is listed for a name that is not shared any more"
