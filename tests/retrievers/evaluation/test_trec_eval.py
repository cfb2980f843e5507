"""Our metrics beside trec_eval's, on made-up rankings; skipped where ``pytrec_eval`` is not installed."""

from __future__ import annotations

import random

import pytest

from callsheet.retrievers.evaluation.ranking_metrics import average_precision, ndcg, recall

TOOLS = [f"tool-{number:02}" for number in range(40)]
CUTS = (1, 5, 10, 20)


def test_recall_ap_and_ndcg_are_trec_evals() -> None:
    """trec_eval divides AP at a cut-off by all that is wanted, ours by what the cut-off can hold."""
    trec = pytest.importorskip("pytrec_eval", reason="pip install pytrec-eval-terrier to compare with trec_eval")
    chance = random.Random(5)
    ranked = {str(i): chance.sample(TOOLS, 25) for i in range(50)}
    gold = {str(i): chance.sample(TOOLS, chance.randint(1, 12)) for i in range(50)}
    cuts = ",".join(map(str, CUTS))
    judge = trec.RelevanceEvaluator(
        {query: dict.fromkeys(wanted, 1) for query, wanted in gold.items()},
        {f"{name}.{cuts}" for name in ("recall", "map_cut", "ndcg_cut")},
    )
    theirs = judge.evaluate({q: {tool: float(-place) for place, tool in enumerate(r)} for q, r in ranked.items()})
    for query, wanted in gold.items():
        sets = [{tool} for tool in wanted]
        for k in CUTS:
            assert recall(ranked[query], sets, k) == pytest.approx(theirs[query][f"recall_{k}"])
            assert ndcg(ranked[query], sets, k) == pytest.approx(theirs[query][f"ndcg_cut_{k}"])
            share = min(len(wanted), k) / len(wanted)
            assert average_precision(ranked[query], sets, k) * share == pytest.approx(theirs[query][f"map_cut_{k}"])
