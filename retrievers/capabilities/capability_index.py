"""Finds the capabilities of a taxonomy that tools have and that requests ask for."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Capability, Catalog, Taxonomy, Tool, shipped_taxonomy, split_name
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.embedding import Embedder, MiniLM, encode, encode_spans
from callsheet.retrievers.index.indexes import ChromaIndex
from callsheet.retrievers.index.node_texts import Span, VectorIndex, first_sentence

Confidences = NDArray[np.float32]
SIGNS = np.float32(0.15)
INTERCEPT = -4.3
SLOPE = 12.4
GAP = 11.8
LEAST_LINK = 0.1
GENERAL_TEMPERATURE = np.float32(0.05)
_LEAST_GENERAL = np.float32(0.001)
LIKELY = 0.5
MOST = 3
BEST = 3
SUREST = np.float32(0.99)
_BLOCK = 256
"""Number of texts that are compared with all phrases at once."""
POSSIBLE = 0.1
"""Minimum confidence at which a tool possibly has a capability."""


@dataclass(frozen=True, slots=True)
class GeneralClass:
    """The tools of one general capability.

    A capability is *general* if its tools serve requests on any subject, as a web search does.

    Attributes:
        capability: Id of the capability.
        column: Index of the capability among the leaves of the taxonomy.
        weight: Weight of the capability for a request that does not ask for it.
        rows: The rows of the tools, ``(k,)``.
        log_odds: For each of these tools, the log odds that it serves requests on any subject, ``(k,)``.
    """

    capability: str
    column: int
    weight: float
    rows: NDArray[np.intp]
    log_odds: Confidences


class CapabilityIndex:
    """Computes the confidence that a tool has, and that a request asks for, each of the narrowest capabilities.

    These capabilities are the columns of all results. The phrases that describe them are embedded once, on first use,
    by the embedder of ``vectors`` if it has one, otherwise by ``embeddings``. ``vectors`` has the vectors of ``nodes``,
    in the same order. Agents have no capabilities.
    """

    def __init__(
        self, catalog: Catalog, vectors: VectorIndex, nodes: Sequence[str], taxonomy: Taxonomy, *, embeddings: Embedder
    ) -> None:
        self.taxonomy = taxonomy
        self.leaves = taxonomy.leaves
        self._catalog = catalog
        self._vectors = vectors
        self._nodes = nodes
        self._embeddings = vectors.embeddings if isinstance(vectors, ChromaIndex) else embeddings
        entries = [taxonomy.by_id[leaf] for leaf in self.leaves]
        self._phrases = [(entry.definition, *entry.examples) for entry in entries]
        self._signs = Signs(entries)
        self._whole: tuple[CapabilityIndex, Sequence[int]] | None = None

    def part(self, rows: Sequence[int]) -> CapabilityIndex:
        """Returns the index of these rows only, without new computation."""
        part = copy(self)
        part._nodes = [self._nodes[row] for row in rows]
        part._whole = (self, rows)
        for cached in ("of_tools", "rows", "general_classes", "general_index"):
            part.__dict__.pop(cached, None)
        return part

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Maps the id of each node to its row."""
        return {node: row for row, node in enumerate(self._nodes)}

    @cached_property
    def of_tools(self) -> Confidences:
        """Returns the confidence that each node has each of the narrowest capabilities, as ``(n, c)``.

        There is one row per node and one column per capability. A tool that declares capabilities of
        the taxonomy has 1 for these and 0 for all others.
        """
        if self._whole is not None:
            whole, rows = self._whole
            return whole.of_tools[list(rows)]
        if not self.leaves or not self._nodes:
            return np.zeros((len(self._nodes), len(self.leaves)), np.float32)
        fits = self._fit(self._similar_to_tools())
        tools = [*map(self._catalog.tools.get, self._nodes)]
        for row, tool in enumerate(tools):
            if tool is not None:
                fits[row] += SIGNS * self._signs.of_tool(tool)
        confidences = confidence(fits)
        for row, tool in enumerate(tools):
            declared = [name for name in tool.capabilities if name in self._columns] if tool else []
            if tool is None or declared:
                confidences[row] = 0
            for name in declared:
                confidences[row, self._columns[name]] = 1
        return confidences

    def asked(self, query: str, spans: Sequence[Span] = ()) -> Confidences:
        """Returns the confidence that a query and its spans ask for each capability, as ``(1 + len(spans), c)``."""
        if not self.leaves:
            return np.zeros((1 + len(spans), 0), np.float32)
        texts = (query, *(query[start:end] for start, end in spans))
        fits = self._fit(encode_spans(self._embeddings, query, spans) @ self._vectors_of_phrases.T)
        return confidence(fits + SIGNS * np.stack([self._signs.of_request(text) for text in texts]))

    def evidence(self, asked: Confidences, *, sure: float) -> Confidences:
        """Returns how well the capabilities of each node match those that a request asks for, as ``(n,)`` from 0 to 1.

        ::

            e(t) = max over c with q(c) >= sure of q(c) * a(t, c)
        """
        columns = np.flatnonzero(asked >= sure)
        if not len(columns):
            return np.zeros(len(self._nodes), np.float32)
        return np.asarray((self.of_tools[:, columns] * asked[columns]).max(axis=1), np.float32)

    def general(self, query: str, spans: Sequence[Span], scores: Confidences) -> Confidences:
        """Returns the probability of each general tool for a query that no other tool fits, as ``(n,)``.

        A general tool serves requests on any subject, as a web search does. Probabilities below .001 are set to 0. The
        taxonomy marks general capabilities; if it marks none, those of the shipped detailed taxonomy are used.

        ::

            g(t)     = sum over general c of w(c) * r(t | c) / max(1, sum of w)
            w(c)     = general(c) + q(c), for each c that a tool has, with b(t, c) >= .5
            b(t, c)  = a(t, c) * (1 - max over c' of another branch of the taxonomy of a(t, c'))
            r(t | c) = softmax over these tools of s(t) / .05 + log(b(t, c) / (1 - b(t, c)))

        Because of b, a tool that deletes from a database is not general, although it works with databases.

        Args:
            query: The query, from which q is computed.
            spans: The spans of its clauses.
            scores: s, ``(n,)``; nodes with -1 are left out.
        """
        found = np.zeros(len(self._nodes), np.float32)
        sum_of_weights = 0.0
        index = self.general_index
        asked = index.asked(query, spans)[0]
        for general in index.general_classes:
            known = scores[general.rows] > -1
            rows = general.rows[known]
            if len(rows):
                powers = scores[rows] / GENERAL_TEMPERATURE + general.log_odds[known]
                shares = np.exp(powers - powers.max())
                weight = general.weight + float(asked[general.column])
                found[rows] += np.float32(weight) * shares / shares.sum()
                sum_of_weights += weight
        found /= np.float32(max(1.0, sum_of_weights))
        return np.where(found < _LEAST_GENERAL, np.float32(0), found)

    @cached_property
    def general_index(self) -> CapabilityIndex:
        """Returns this index if its taxonomy marks general capabilities, else the index of the detailed taxonomy."""
        if any(capability.general is not None for capability in self.taxonomy.capabilities):
            return self
        if self._whole is not None:
            whole, rows = self._whole
            return whole.general_index.part(rows)
        detailed = shipped_taxonomy("detailed")
        return CapabilityIndex(self._catalog, self._vectors, self._nodes, detailed, embeddings=self._embeddings)

    @cached_property
    def general_classes(self) -> tuple[GeneralClass, ...]:
        """Returns the capabilities that this taxonomy marks as general, each with its tools."""
        branches = np.array([self.taxonomy.at(0, leaf) for leaf in self.leaves])
        found: list[GeneralClass] = []
        for column, leaf in enumerate(self.leaves):
            weight = self.taxonomy.by_id[leaf].general
            if weight is not None:
                others = self.of_tools[:, branches != branches[column]].max(axis=1, initial=0)
                confidences = self.of_tools[:, column] * (1 - others)
                rows = np.flatnonzero(confidences >= LIKELY)
                sure = np.minimum(confidences[rows], SUREST)
                found.append(GeneralClass(leaf, column, weight, rows, np.log(sure / (1 - sure))))
        return tuple(found)

    def likely(self, asked: Confidences, use: Mapping[int, float]) -> Confidences:
        """Returns the likelihood of each capability, as ``(c,)``: from the request, and from the tools that fit it.

        ::

            p(c) = max(q(c), sum over t of E(t) * a(t, c), scaled so that the largest sum is 1)
        """
        rows = list(use)
        sums = np.array([use[row] for row in rows], np.float32) @ self.of_tools[rows]
        return np.asarray(np.maximum(asked, sums / max(float(sums.max(initial=0.0)), 1e-9)), np.float32)

    def link(self, row: int, likely: Confidences) -> float:
        """Returns how strongly a tool is linked to the likely capabilities, .1 to 1; 1 for a tool without capabilities.

        ::

            l(t) = max(.1, max over c of p(c) * a(t, c))
        """
        has = self.of_tools[row]
        if float(has.max(initial=0.0)) < POSSIBLE:
            return 1.0
        return max(LEAST_LINK, float((likely * has).max()))

    def named(self, likely: Confidences) -> dict[str, float]:
        """Returns the likelihood of each capability by its id, highest first; likelihoods below .1 are left out."""
        best = np.argsort(-likely, kind="stable").tolist()
        return {self.leaves[place]: float(likely[place]) for place in best if likely[place] >= LEAST_LINK}

    def vector(self, named: Mapping[str, float]) -> Confidences:
        """Converts the result of ``named`` back to likelihoods by column, ``(c,)``."""
        return np.array([named.get(leaf, 0.0) for leaf in self.leaves], np.float32)

    @cached_property
    def _vectors_of_phrases(self) -> NDArray[np.float32]:
        phrases = [phrase for phrases in self._phrases for phrase in phrases]
        known = shipped_phrases() if getattr(self._embeddings, "name", "") == MiniLM().name else {}
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
        vectors = {**known, **dict(zip(new, encode(self._embeddings, new), strict=True))} if new else known
        return np.stack([vectors[phrase] for phrase in phrases])

    def _similar_to_tools(self) -> NDArray[np.float32]:
        """Returns cosines of nodes and phrases, ``(n, p)``."""
        if isinstance(self._vectors, ChromaIndex):
            return self._vectors.products(self._vectors_of_phrases).T.copy()
        scores = [self._vectors.scores(phrase)[0] for phrases in self._phrases for phrase in phrases]
        return np.stack(scores, axis=1)

    def _fit(self, similar: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the score of each leaf: half the best cosine of its phrases, plus half the mean of the best three."""
        fits = np.empty((len(similar), len(self.leaves)), np.float32)
        counts = np.minimum(self._counts_of_phrases, BEST).astype(np.float32)
        # In blocks: each has the phrases of all leaves side by side, padded to the most that a leaf has.
        for start in range(0, len(similar), _BLOCK):
            block = similar[start : start + _BLOCK]
            padded = np.pad(block, ((0, 0), (0, 1)), constant_values=-np.inf)
            best = np.sort(padded[:, self._places_of_phrases], axis=2)[:, :, -BEST:]
            means = np.where(np.isfinite(best), best, np.float32(0)).sum(axis=2) / counts
            fits[start : start + _BLOCK] = 0.5 * (best[:, :, -1] + means)
        return fits

    @cached_property
    def _counts_of_phrases(self) -> NDArray[np.intp]:
        """Returns the number of phrases of each leaf, ``(c,)``."""
        return np.array([len(phrases) for phrases in self._phrases])

    @cached_property
    def _places_of_phrases(self) -> NDArray[np.intp]:
        """Returns the columns of the phrases of each leaf, ``(c, most)``, padded with the number of all phrases."""
        counts = self._counts_of_phrases
        numbers = np.arange(counts.max())
        first = np.cumsum(counts) - counts
        return np.where(numbers < counts[:, None], first[:, None] + numbers, counts.sum())

    @cached_property
    def _columns(self) -> dict[str, list[int]]:
        """Maps a capability of any level to the columns of the leaves below it, a leaf to its own column."""
        columns: dict[str, list[int]] = {}
        for column, leaf in enumerate(self.leaves):
            for name in (leaf, *self.taxonomy.ancestors(leaf)):
                columns.setdefault(name, []).append(column)
        return columns


@cache
def shipped_phrases() -> Mapping[str, Confidences]:
    """Loads the precomputed vectors of the phrases of the shipped taxonomies, made by the embedded model."""
    content = files("callsheet.retrievers.capabilities").joinpath("phrases.npz").read_bytes()
    held = np.load(io.BytesIO(content))
    return dict(zip(held["phrases"].tolist(), held["vectors"], strict=True))


def confidence(fits: NDArray[np.floating[Any]]) -> Confidences:
    """Returns the confidence of each capability, from its score and its distance to the best score.

    ::

        p(c) = 1 / (1 + exp(-(-4.3 + 12.4 s(c) - 11.8 (max s - s(c)))))

    Source: ours; logistic regression on hand-labelled tools (``benchmarks/sets/capability_labels.json``, the half for
    development), with the cosines of the embedded MiniLM. s is the score of each text for each capability, ``(m, c)``.
    """
    behind = fits.max(axis=1, keepdims=True) - fits
    odds = np.exp(-(INTERCEPT + SLOPE * fits - GAP * behind))
    return np.asarray(1 / (1 + odds), np.float32)


_NAME = 1.0
_TEXT = 0.6
_PARAMETERS = 0.4
_MAX_SIGNS = 12
_MAX_WORDS = 200
_FIRST = 4


class Signs:
    """Finds words in a text that indicate a capability; they are called the *signs* of the capability."""

    def __init__(self, capabilities: Sequence[Capability]) -> None:
        self._count = len(capabilities)
        words = [{sign for word in entry.words if (sign := tuple(tokens(word)))} for entry in capabilities]
        shared = Counter(sign for signs in words for sign in signs)
        self._by_first: defaultdict[str, list[tuple[tuple[str, ...], int, float]]] = defaultdict(list)
        for column, signs in enumerate(words):
            for sign in signs:
                self._by_first[sign[0]].append((sign, column, 1 / shared[sign]))

    def of_tool(self, tool: Tool) -> NDArray[np.float32]:
        """Returns how strongly the words of a tool indicate each capability, as ``(c,)`` from 0 to 1.

        A sign counts 1 in the name, .6 in the first sentence and .4 in the names of parameters, divided by the number
        of capabilities that share it. The best sign of each capability counts.
        """
        parameters = " ".join(split_name(parameter.name) for parameter in tool.parameters[:_MAX_SIGNS])
        sentence = first_sentence(tool.description)
        return self._best(((split_name(tool.name), _NAME), (sentence, _TEXT), (parameters, _PARAMETERS)))

    def of_request(self, text: str) -> NDArray[np.float32]:
        """Returns how strongly the words of a request indicate each capability, as ``(c,)`` from 0 to 1.

        A sign counts 1 in the first four words, where the verb usually is, and .6 after them.
        """
        words = text.split(None, _FIRST)
        return self._best(((" ".join(words[:_FIRST]), _NAME), (text, _TEXT)))

    def _best(self, parts: Iterable[tuple[str, float]]) -> NDArray[np.float32]:
        best = np.zeros(self._count, np.float32)
        for text, weight in parts:
            words = tokens(text)[:_MAX_WORDS]
            for place, word in enumerate(words):
                for sign, column, worth in self._by_first.get(word, ()):
                    if tuple(words[place : place + len(sign)]) == sign:
                        best[column] = max(best[column], weight * worth)
        return best


@dataclass(frozen=True, slots=True)
class Assigned:
    """A capability that was assigned to a tool, with its confidence (0 to 1) and its origin: the author or the text."""

    capability: str
    confidence: float
    by: Literal["declared", "text"]


@dataclass(frozen=True)
class Assignments:
    """The capabilities of all tools of a catalog, by tool id, the most confident first; a tool may have none."""

    taxonomy: Taxonomy
    of: Mapping[str, tuple[Assigned, ...]]

    @property
    def coverage(self) -> float:
        """Returns the share of the tools that have a capability; 1 if there are no tools."""
        return sum(map(bool, self.of.values())) / len(self.of) if self.of else 1.0

    @cached_property
    def tools_of(self) -> Mapping[str, tuple[str, ...]]:
        """Maps the id of each capability to the tools that have it or a narrower one, in the order of the taxonomy."""
        tools: dict[str, dict[str, None]] = {name: {} for name in self.taxonomy.by_id}
        for tool, entries in self.of.items():
            for entry in entries:
                for name in (entry.capability, *self.taxonomy.ancestors(entry.capability)):
                    tools[name][tool] = None
        return {name: tuple(ids) for name, ids in tools.items()}

    def to_dict(self) -> dict[str, Any]:
        """Returns the assignments as JSON values, for ``callsheet capabilities --json``."""
        capabilities = [
            {"id": name, "name": entry.name, "broader": entry.broader, "tools": list(self.tools_of[name])}
            for name, entry in self.taxonomy.by_id.items()
        ]
        tools = []
        for tool, entries in self.of.items():
            known = [{"id": a.capability, "confidence": a.confidence, "by": a.by} for a in entries]
            tools.append({"id": tool, "capabilities": known})
        return {"capabilities": capabilities, "coverage": self.coverage, "tools": tools}


def assign_capabilities(catalog: Catalog, index: CapabilityIndex) -> Assignments:
    """Assigns capabilities to all tools, without a language model.

    A tool with declared capabilities has exactly these. Any other tool gets its likely capabilities (confidence of at
    least .5, at most three), otherwise the best one with at least .1, otherwise none.
    """
    taxonomy = index.taxonomy
    assigned = dict[str, tuple[Assigned, ...]]()
    for tool in catalog.tools.values():
        if tool.capabilities:
            known = [name for name in dict.fromkeys(tool.capabilities) if name in taxonomy.by_id]
            assigned[tool.id] = tuple(Assigned(name, 1.0, "declared") for name in known)
        else:
            assigned[tool.id] = _best(index.of_tools[index.rows[tool.id]], index.leaves)
    return Assignments(taxonomy, assigned)


def with_capabilities(catalog: Catalog, assignments: Assignments) -> Catalog:
    """Returns a copy of the catalog in which the likely assigned capabilities are declared."""

    def declared(tool: Tool) -> Tool:
        sure = tuple(a.capability for a in assignments.of.get(tool.id, ()) if a.confidence >= LIKELY)
        return tool.model_copy(update={"capabilities": sure}) if sure else tool

    agents = (agent.model_copy(update={"tools": tuple(map(declared, agent.tools))}) for agent in catalog.agents)
    return Catalog(agents=tuple(agents), skills=catalog.skills)


def _best(confidences: Confidences, leaves: tuple[str, ...]) -> tuple[Assigned, ...]:
    best = np.argsort(-confidences, kind="stable")[:MOST]
    likely = [place for place in best.tolist() if confidences[place] >= LIKELY]
    possible = [place for place in best[:1].tolist() if confidences[place] >= POSSIBLE]
    return tuple(Assigned(leaves[place], float(confidences[place]), "text") for place in likely or possible)
