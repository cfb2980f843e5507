"""A console that shows no hidden characters from servers' texts, and its tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table

from callsheet.graphs.text.sanitizing import shown

WIDEST = 100
GREY = "bright_black"


class SafeConsole(Console):
    """A console that removes control characters, ANSI codes and other hidden characters from all texts."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As in rich, with the text of every segment cleaned; styles are kept."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text, most=None), style, control)


def console(*, wrap: bool = False) -> SafeConsole:
    """A console of at most 100 columns for standard output; in a pipe, lines are unlimited unless they ``wrap``."""
    probe = SafeConsole()
    width = min(probe.width, WIDEST) if probe.is_terminal else WIDEST
    return SafeConsole(width=width, highlight=False, soft_wrap=not (wrap or probe.is_terminal))


def table(*columns: Column | str, header: bool = True) -> Table:
    """A table without lines."""
    return Table(*columns, box=None, pad_edge=False, show_header=header)


def number(header: str = "") -> Column:
    """A column of numbers."""
    return Column(header, justify="right")


def folded(header: str = "", style: str = "cyan") -> Column:
    """A column whose long texts take several lines."""
    return Column(header, style=style, overflow="fold")


def one_line(text: str, most: int) -> str:
    """A text in one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
