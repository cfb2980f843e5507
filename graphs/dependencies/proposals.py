"""Dependencies beside a catalog: what a program proposed and a person decides, and rules for many tools at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Dependency, DependencyKind, Name, Provenance, Record
from callsheet.graphs.dependencies.dependency_rules import Rule
from callsheet.graphs.storage import replace_text
from callsheet.graphs.text.sanitizing import clean

KEY, FORMAT = "callsheet_dependencies", 1


class Proposal(Record):
    """An edge that a program proposes, with what a person says to it.

    Attributes:
        source: Id of the tool that needs the other.
        target: Id of the tool that is needed.
        kind: One of the four kinds.
        parameter: The argument that the target gives a value for, if the edge is about one; names of a nested one
            are joined by dots.
        confidence: How sure the program is, 0 to 1.
        evidence: Why it thinks so.
        count: How often a call of the source was seen to use a result of the target.
        accept: ``True`` or ``False`` once a person has decided; ``None`` before that.
    """

    source: Name
    target: Name
    kind: DependencyKind
    parameter: str | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    evidence: str = ""
    count: Annotated[int, Field(ge=0)] = 0
    accept: bool | None = None

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What makes it the same proposal as another: source, target and parameter."""
        return self.source, self.target, self.parameter

    @property
    def dependency(self) -> Dependency:
        """The edge as a tool holds it; its provenance says whether a person has accepted it."""
        unseen = Provenance.OBSERVED if self.count else Provenance.PROPOSED
        return Dependency(
            tool=self.target,
            kind=self.kind,
            parameter=self.parameter,
            reason=self.evidence,
            provenance=Provenance.REVIEWED if self.accept else unseen,
            confidence=self.confidence,
            count=self.count,
        )


class DependencyFile(Record):
    """The content of a file of dependencies, which is loaded beside a catalog.

    Attributes:
        rules: What holds for many tools at once, as a person declares it.
        edges: Proposals, reviewed or not.
    """

    rules: tuple[Rule, ...] = ()
    edges: tuple[Proposal, ...] = ()


def parse_dependencies(document: Mapping[str, Any], where: str) -> DependencyFile:
    """The content of a parsed file.

    Args:
        document: An object with ``callsheet_dependencies``.
        where: The file's name, for messages.

    Raises:
        CatalogError: Its format or a field is unknown, a field is missing or of the wrong type, or two edges are the
            same.
    """
    if document.get(KEY) != FORMAT:
        raise CatalogError(
            f"{where}: format {document.get(KEY)!r} of {KEY} is not known here; this program reads {FORMAT}"
        )
    try:
        found = DependencyFile(**{name: value for name, value in clean(dict(document)).items() if name != KEY})
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error
    seen: set[tuple[str, str, str | None]] = set()
    for number, edge in enumerate(found.edges):
        if edge.key in seen:
            raise CatalogError(f"{where}: edges.{number}: {edge.source} -> {edge.target} is there twice: remove one")
        seen.add(edge.key)
    return found


def read_dependencies(path: str | Path) -> DependencyFile:
    """The content of a file of dependencies.

    Raises:
        CatalogError: It cannot be read, is not JSON, or not of the form.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(document, dict) or KEY not in document:
        raise CatalogError(f"{path}: not a file of dependencies: it should be an object with {KEY!r}: {FORMAT}")
    return parse_dependencies(document, str(path))


def write_dependencies(content: DependencyFile, path: str | Path) -> None:
    """Writes a file of dependencies, one edge a line so that a review reads well; all of it or nothing.

    Raises:
        CatalogError: It cannot be written.
    """
    file = Path(path)
    rules = [rule.model_dump(mode="json", exclude_defaults=True) for rule in content.rules]
    edges = [edge.model_dump(mode="json") for edge in content.edges]
    text = f'{{\n "{KEY}": {FORMAT},\n "rules": {_listed(rules)},\n "edges": {_listed(edges)}\n}}\n'
    mask = os.umask(0)
    os.umask(mask)
    try:
        mode = file.stat().st_mode if file.exists() else 0o666 & ~mask
        replace_text(file, text, mode=0o666)
        file.chmod(mode)
    except OSError as error:
        raise CatalogError(f"{path}: cannot be written: {error.strerror}") from error


def merge_proposals(before: DependencyFile, found: Iterable[Proposal]) -> DependencyFile:
    """A file with what was found now, in which nothing is lost that a person wrote.

    Rules stay, and so does an edge that was accepted or refused, as it is, even if it is not found any more; one that
    nobody looked at stays only if it is found again.

    Args:
        before: The file as it is.
        found: The proposals of now, in the order that they are to have.
    """
    decided = {edge.key: edge for edge in before.edges if edge.accept is not None}
    edges = [decided.pop(edge.key, edge) for edge in found]
    return DependencyFile(rules=before.rules, edges=(*edges, *decided.values()))


def combine(*groups: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Proposals of several programs as one list, the surest first; of the same edge the surest, with all evidence."""
    best: dict[tuple[str, str, str | None], Proposal] = {}
    for edge in (edge for group in groups for edge in group):
        if (known := best.get(edge.key)) is None:
            best[edge.key] = edge
            continue
        surer, other = (known, edge) if known.confidence >= edge.confidence else (edge, known)
        said = "; ".join(dict.fromkeys(filter(None, (surer.evidence, other.evidence))))
        best[edge.key] = surer.model_copy(update={"evidence": said, "count": max(surer.count, other.count)})
    return tuple(
        sorted(best.values(), key=lambda edge: (-edge.confidence, edge.source, edge.parameter or "", edge.target))
    )


def _listed(records: Iterable[Mapping[str, Any]]) -> str:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"
