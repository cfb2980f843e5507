"""The terminal, to which nothing hidden gets through from a server's texts."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from callsheet.graphs.text.sanitizing import shown

WIDEST = 100


class SafeConsole(Console):
    """A console that takes control characters, ANSI and what else is hidden out of all texts that it prints."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's own, with the text of every segment cleaned; the styles are segments' own and stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text, most=None), style, control)


def console() -> Console:
    """For standard output: at most 100 columns on a terminal; in a pipe lines are left as long as they are."""
    probe = SafeConsole()
    if probe.is_terminal:
        return SafeConsole(width=min(probe.width, WIDEST), highlight=False)
    return SafeConsole(width=WIDEST, highlight=False, soft_wrap=True)
