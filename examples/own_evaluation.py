"""How well your tools are found: requests as they were made, with the tools that they need. No key, no network.

python -m examples.own_evaluation
"""

from callsheet import AgentGraphRetriever, load
from callsheet.retrievers import evaluate, read_queries

loaded = load("examples/eval/catalog")  # yours: "mcp.json", {"agent": [tools]}, or several in a list
queries = read_queries("examples/eval/queries.jsonl", loaded.catalog)
found = evaluate(AgentGraphRetriever.from_catalog(loaded), queries, tools=5)
for name in ("agent.recall@1", "tool.recall@5", "complete@5"):
    low, high = found.intervals[name]
    print(f"{name:15} {found.metric(name):.2f}  [{low:.2f}, {high:.2f}]")
for miss in found.missed:
    print(f"{miss.query!r} lacks", *(f"{' or '.join(lacking.ids)}: {lacking.why}" for lacking in miss.lacking))
assert found.metric("agent.recall@1") > 0.75, "a gate: agents are not told apart any more"
