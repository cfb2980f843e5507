// Two runs beside each other, and what is different.

import { ask } from "../common/server.js";
import { address, announce, make, table } from "../common/dom.js";
import { seconds } from "./dag.js";
import { article } from "./run.js";

/** Shows the last requests of two threads. */
export async function showBoth(view, ids) {
  const runs = (await Promise.all(ids.map((id) => ask("run", { id }, `run ${id}`)))).map(([newest]) => newest);
  const shown = runs.map((run, i) => ({ run, shown: article({}), back: make("a", { href: address("runs", { id: ids[i] }), text: `Open run ${"AB"[i]}` }) }));
  const [a, b] = runs.map((run) => new Set(run.steps.flatMap((step) => step.calls.map((call) => call.tool.label))));
  const only = (one, other) => [...one].filter((tool) => !other.has(tool)).join(", ") || "none";
  const calls = (run) => run.steps.reduce((n, step) => n + step.calls.length, 0);
  const failed = (run) => run.steps.filter((step) => step.status === "failed").length;
  const tokens = (run) => (run.usage ? run.usage.input_tokens + run.usage.output_tokens : "none");
  const row = (name, of) => [name, ...runs.map((run) => of(run).toLocaleString("en"))];
  view.replaceChildren(make("section", { class: "runs both" }, make("p", { class: "back" }, make("a", { href: address("runs"), text: "All runs" })),
    make("h1", { tabindex: "-1", text: "Two runs" }),
    make("div", { class: "run-steps" }, table("What is different", ["", "A", "B"], [
      row("steps", (run) => run.steps.length), row("failed steps", failed), row("calls", calls), row("changes of the plan", (run) => run.revisions.length),
      row("duration", (run) => (run.seconds === null ? "not known" : seconds(run.seconds))), row("tokens of models", tokens), row("cost of models", (run) => run.usage?.cost.words ?? "none"),
      ["tools called here only", only(a, b), only(b, a)]])),
    make("div", { class: "beside-each-other" }, shown.map((one) => make("div", {}, one.back, one.shown.element)))));
  for (const one of shown) one.shown.show(one.run);
  view.querySelector("h1").focus();
  announce("Two runs");
}
