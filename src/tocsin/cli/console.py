"""The consoles that commands print to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0))
# Pictures of control characters, such as ␛; a line still ends where it ends.
_SIGNS: Final = {
    code: chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}" for code in _CONTROLS
}
_SHOWN: Final = {code: sign for code, sign in _SIGNS.items() if chr(code) not in "\n\t"}


def new_console(**options: Any) -> Console:
    """Return a console that prints texts as they are, without colours and emoji of its own making."""
    return _TextConsole(highlight=False, emoji=False, **options)


class _TextConsole(Console):
    """Shows control characters as signs at a terminal: texts come from any file, and a terminal would obey them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        segments = super().render(renderable, options)
        return map(_visible, segments) if self.is_terminal else segments


def _visible(segment: Segment) -> Segment:
    if segment.control or segment.text.isprintable():
        return segment
    return Segment(segment.text.translate(_SHOWN), segment.style)
