"""A terminal console that shows no hidden characters from servers' texts."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from callsheet.graphs.text.sanitizing import shown

WIDEST = 100
GREY = "bright_black"


class SafeConsole(Console):
    """A console that removes control characters, ANSI codes and other hidden characters from all texts."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As in rich, with the text of every segment cleaned; styles are kept."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text, most=None), style, control)


def console() -> Console:
    """A console for standard output: at most 100 columns on a terminal, unlimited lines in a pipe."""
    probe = SafeConsole()
    if probe.is_terminal:
        return SafeConsole(width=min(probe.width, WIDEST), highlight=False)
    return SafeConsole(width=WIDEST, highlight=False, soft_wrap=True)


def one_line(text: str, most: int) -> str:
    """A text in one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
