"""Tests tried one by one."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.matching.operators.index import Passed, Tests, Texts

__all__ = ["OneByOne"]


class OneByOne:
    """Tries every test of an attribute on every string of it."""

    def __init__(self, holds: Callable[[str, str], bool]) -> None:
        self._holds = holds
        self._tests: dict[int, dict[str, int]] = {}

    def insert(self, tests: Tests) -> None:
        """Hold these tests, of which none is held."""
        for attribute, code, constant in tests:
            self._tests.setdefault(attribute, {})[constant] = code

    def remove(self, tests: Tests) -> None:
        """Hold these tests, all of which are held, no longer."""
        for attribute, _, constant in tests:
            del self._tests[attribute][constant]

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""
        return Passed.of(
            [
                [
                    code
                    for constant, code in self._tests.get(attribute, {}).items()
                    if self._holds(text, constant)
                ]
                for attribute, text in texts
            ]
        )
