"""The parts of a lint rule: name, severity, description and check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from callsheet.graphs.capabilities.taxonomy import Taxonomy
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.dependencies.dependency_files import Proposal
from callsheet.graphs.errors import Finding, Severity
from callsheet.graphs.text.hidden import escaped


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules check: a catalog, the known capabilities, the problems of loading, and inferred dependencies."""

    catalog: Catalog
    taxonomy: Taxonomy
    problems: tuple[Problem, ...] = ()
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """A violation of a rule: what is wrong, where, and how to correct it."""

    message: str
    agent: str = ""
    tool: str = ""


Look = Callable[[Subject], Iterator[Remark]]


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint rule; ``about`` describes it in the documentation, and ``look`` yields a remark for each violation."""

    name: str
    severity: Severity
    about: str
    look: Look

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """Yields a finding for each violation, in the order of the catalog."""
        for remark in self.look(subject):
            yield Finding(self.severity, self.name, remark.message, remark.agent, remark.tool)


def rule(name: str, severity: Severity, about: str) -> Callable[[Look], LintRule]:
    """Makes a lint rule of the decorated function, which yields the remarks.

    Examples:
        >>> @rule("long-name", Severity.INFO, "The name of a tool has more than 40 characters.")
        ... def long_name(subject: Subject) -> Iterator[Remark]:
        ...     for tool in subject.catalog.tools.values():
        ...         if len(tool.name) > 40:
        ...             yield on(tool, "has a long name: shorten it")
    """
    return lambda look: LintRule(name, severity, about, look)


def on(tool: Tool, message: str) -> Remark:
    """Returns a remark about a tool."""
    return Remark(message, tool.agent, tool.id)


def quoted(text: str, most: int = 100) -> str:
    """Returns the beginning of an untrusted text as one quoted line, with hidden characters escaped."""
    line = " ".join(escaped(text[: most * 4]).split())
    if len(line) > most:
        line = f"{line[: most - 1]}…"
    return repr(line)


def first_names(names: list[str], most: int = 5) -> str:
    """Joins the first names as ``a, b, c and 4 more``."""
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text
