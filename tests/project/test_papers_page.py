"""The figures of ours on docs/concepts/papers.md are those that the benchmarks have stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "docs" / "concepts" / "papers.md").read_text(encoding="utf-8")
STEPS, GRAPH = "livemcpbench-steps-single", "Agent-as-a-Graph"
RATIOS = ("3:1", "2:1", "1.5:1", "1:1", "1:1.5", "1:2", "1:3")


def stored(file: str) -> Any:
    return json.loads((RESULTS / file).read_text(encoding="utf-8"))


def metric(name: str, method: str, of: str) -> str:
    """A mean of a stored table, as the page writes it."""
    levels = stored(f"retrieval/{name}.json")["levels"]
    methods = levels["agent" if name == STEPS else "tool"]["methods"]
    return f"{methods[method]['metrics'][of]['mean']:.3f}".lstrip("0")


def cell(file: str, row: str, column: int) -> str:
    """A cell of a stored table of texts, without its interval."""
    rows = {str(one[0]): one for one in stored(file)["rows"]}
    return str(rows[row][column]).partition(" ")[0]


def row_of(element: str) -> list[str]:
    """The cells of ours in the row of the page that begins with these words: by the same method, and by default."""
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| {element}")]
    assert len(rows) == 1, element
    cells = [one.strip() for one in rows[0].strip("|").split(" | ")]
    return cells[2:4]


OURS: dict[str, list[str]] = {
    "Eq. 3 at 1.5 : 1": [metric(STEPS, f"{GRAPH} 1.5:1", "recall@5"), metric(STEPS, "Callsheet, default", "recall@5")],
    "Eq. 3 at 1 : 1 ": [metric(STEPS, f"{GRAPH} 1:1", "recall@5")],
    "Eq. 3 at 3 : 1": [metric(STEPS, f"{GRAPH} {ratio}", "recall@5") for ratio in RATIOS[:2]],
    "Eq. 3 at 1 : 1.5": [metric(STEPS, f"{GRAPH} {ratio}", "recall@5") for ratio in RATIOS[4:]],
    "Eq. 2 at 3 : 1": [metric(STEPS, f"agents + tools, weighted RRF {ratio}", "recall@5") for ratio in RATIOS[:4]],
    "Eq. 2 at 1 : 1.5": [metric(STEPS, f"agents + tools, weighted RRF {ratio}", "recall@5") for ratio in RATIOS[4:]],
    "N agents and N tools": [cell("graph/agent-as-a-graph.json", "1.5:1", column) for column in (3, 4)],
    "from agents' own nodes": [cell("graph/agent-as-a-graph.json", ratio, 6) for ratio in ("1.5:1", "1:1")],
    "BM25, LlamaIndex's": [metric(STEPS, f"BM25, {level}", "recall@5") for level in ("agents", "tools")],
    "Q.Retrieval": [metric(STEPS, "dense, agents", "recall@5")],
    "MCP-Zero, with": [metric(STEPS, "MCP-Zero", "recall@5")],
    "ScaleMCP": [metric(STEPS, "dense, concatenated (ScaleMCP)", "recall@5")],
    "Recall@1": [metric(STEPS, f"{GRAPH} 1.5:1", "recall@1"), metric(STEPS, "Callsheet, default", "recall@1")],
    "nDCG@5; mAP@5 at": [
        metric(STEPS, method, of) for method in (f"{GRAPH} 1.5:1", "Callsheet, default") for of in ("ndcg@5", "map@5")
    ],
    "BM25 |": [metric("toollinkos-published", "BM25", "map@10")],
    "naive RAG |": [metric("toollinkos-published", "dense (naive RAG)", "map@10")],
    "hybrid RAG, alpha": [metric("toollinkos-published", "BM25 + dense, alpha = .8 (hybrid RAG)", "map@10")],
    "hybrid, plain RRF": [metric("toollinkos-published", "BM25 + dense, RRF", "map@10")],
    "Algorithm 1, k = 3, from naive RAG": [
        metric(f"toollinkos-{order}", method, "map@10")
        for method in ("Graph RAG-Tool Fusion k=3", "Callsheet, default")
        for order in ("published", "shuffled")
    ],
    "Algorithm 1, k = 3, from hybrid": [
        metric(f"toollinkos-{order}", "Graph RAG-Tool Fusion k=3, on hybrid", "map@10")
        for order in ("published", "shuffled")
    ],
    "direct dependencies first": [
        metric(f"toollinkos-{order}", "Graph RAG-Tool Fusion k=3, direct first", "map@10")
        for order in ("published", "shuffled")
    ],
    "d_limit": [
        cell("graph/graph-rag-tool-fusion.json", f"mAP@10, d_limit {limit}", 1) for limit in (1, 2, 3, 5, 8, 10, "none")
    ],
    "error 1": [cell("graph/graph-rag-tool-fusion.json", "error: search", 1)],
    "ToolSandbox, naive": [
        metric("toolsandbox", method, "map@10")
        for method in ("dense (naive RAG)", "Graph RAG-Tool Fusion k=3", "Callsheet, default")
    ],
    "HotpotQA, Contain-Acc": [cell("documents/arag-hotpotqa.json", "naive RAG, top 5 chunks", 3)],
    "A-RAG (Full)": [
        cell("documents/arag-hotpotqa.json", "A-RAG, all interfaces", 3),
        *(cell("documents/arag-extractive.json", "HotpotQA", column) for column in (3, 4, 5, 6)),
    ],
    "the same with a model": [
        cell("documents/arag-model.json", row, 2) for row in ("openai:strong-model", "without a model")
    ],
    "medical, LLM-Acc": [
        cell("documents/arag-medical.json", "A-RAG, all interfaces", 1),
        *(cell("documents/arag-extractive.json", "medical", column) for column in (3, 4)),
    ],
    "table 2, HotpotQA": [
        cell("documents/arag-hotpotqa.json", f"without {interface}", 3)
        for interface in ("keyword search", "semantic search", "chunk read")
    ],
    "table 2, MuSiQue": [
        cell("documents/arag-musique.json", f"without {interface}", 3)
        for interface in ("keyword search", "semantic search", "chunk read")
    ],
}


@pytest.mark.parametrize("element", list(OURS))
def test_the_page_has_the_stored_figures_in_their_order(element: str) -> None:
    on_the_page = re.findall(r"\.\d{3}|\d+\.\d%", " ".join(row_of(element)))
    rest = iter(on_the_page)
    assert [figure for figure in OURS[element] if figure not in rest] == [], on_the_page
