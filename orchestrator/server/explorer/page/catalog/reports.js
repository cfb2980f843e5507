// Evaluations: the figures, the tools taken for others, and the queries that lack something.

import { ask } from "../common/server.js";
import { announce, count, make, table } from "../common/dom.js";

export async function showEvaluations(view) {
  const reports = await ask("evaluations");
  view.replaceChildren(make("section", { class: "wide" }, make("h1", { text: "Evaluations" }),
    reports.length ? reports.map(report) : make("div", {},
      make("p", { text: "There are none. Measure your catalog, then show the report:" }),
      make("pre", { text: "callsheet eval queries.jsonl --catalog mcp.json --json > report.json\ncallsheet explore --catalog mcp.json --report report.json" }),
      make("p", { text: "On a LangGraph server: CALLSHEET_REPORTS=report.json" }))));
  announce(count(reports.length, "evaluation"));
}

function report(one) {
  return make("article", {},
    make("h2", { text: one.name }),
    make("p", { class: "small", text: `${count(one.n, "query").replace("querys", "queries")}, ${one.seconds.toFixed(1)} s` }),
    table("Figures", ["of", "metric", ...one.cuts.map((cut) => `@${cut}`), "95 % interval of the last"],
      one.rows.map((row) => [row.of, row.metric, ...row.values.map(figure), row.interval ? `${figure(row.interval[0])} to ${figure(row.interval[1])}` : ""])),
    one.confused.length > 0 && table("Most often confused", ["wanted", "ranked above it", "queries"], one.confused.map((pair) => [pair.wanted, pair.instead, pair.count])),
    one.missed.length > 0 && table("Queries that lack something", ["query", "wanted", "came", "why"],
      one.missed.map((query) => [query.query, query.wanted.join("; "), query.got.slice(0, 3).join(", "), query.why])));
}

function figure(value) {
  return value === null ? "" : value.toFixed(3);
}
