"""What a rule is: a name, a severity, a line for the documentation, and a function that looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from callsheet.graphs.capabilities.taxonomy import Taxonomy
from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.sanitizing import escaped


@dataclass(frozen=True, slots=True)
class Subject:
    """What the rules look at.

    Attributes:
        catalog: All agents and tools.
        taxonomy: The capabilities that are known.
        problems: What was left out when the catalog was loaded.
    """

    catalog: Catalog
    taxonomy: Taxonomy
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says about one place: what, which, and how to cure it."""

    message: str
    agent: str = ""
    tool: str = ""


Look = Callable[[Subject], Iterator[Remark]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is looked for.

    Attributes:
        name: A few words joined by hyphens.
        severity: How much it matters.
        about: What it finds, in one line, for the documentation.
        look: Gives a remark for each place.
    """

    name: str
    severity: Severity
    about: str
    look: Look

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """What it finds, in the order of the catalog."""
        for remark in self.look(subject):
            yield Finding(self.severity, self.name, remark.message, remark.agent, remark.tool)


def rule(name: str, severity: Severity, about: str) -> Callable[[Look], Rule]:
    """Makes a rule of the function below it."""
    return lambda look: Rule(name, severity, about, look)


def on(tool: Tool, message: str) -> Remark:
    """A remark about a tool."""
    return Remark(message, tool.agent, tool.id)


def quoted(text: str, most: int = 100) -> str:
    """A part of a text from outside, on one line, with what is hidden in it written out."""
    line = " ".join(escaped(text[: most * 4]).split())
    return repr(line if len(line) <= most else f"{line[: most - 1]}…")


def listed(names: list[str], most: int = 5) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
