from __future__ import annotations

import ast
from pathlib import Path

import tocsin
from tocsin.structures.jit import compiled_from, kernel_sources

PACKAGE = Path(tocsin.__file__).parent


def imported_by(source: Path) -> set[Path]:
    """Return the modules of this package that a source takes something from."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("tocsin."):
            path = PACKAGE.joinpath(*node.module.split(".")[1:])
            inside = [path / f"{alias.name}.py" for alias in node.names] if path.is_dir() else []
            found.update(one if one.exists() else path / "__init__.py" for one in inside)
            found.update([] if path.is_dir() else [path.with_suffix(".py")])
    return found


def test_code_is_recompiled_when_any_of_its_sources_changes() -> None:
    # A constant is compiled into the kernels that use it, whatever file it stands in.
    sources = kernel_sources()
    kernels = {source for source in sources if source.parent.name == "_kernels"}
    assert len(kernels) > 20
    packages = {PACKAGE / "structures" / "__init__.py"}
    for kernel in kernels:
        direct = imported_by(kernel)
        assert direct <= sources | packages
        assert direct - packages <= compiled_from(kernel)
        assert all(compiled_from(source) <= compiled_from(kernel) for source in direct - packages)
