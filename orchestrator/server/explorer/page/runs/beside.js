// The map beside a run: the tools that its steps were given stand out, and those that are called have a ring.

import { Overtaken } from "../common/server.js";
import { count, make } from "../common/dom.js";
import { known, map } from "../start/map.js";

/** The element, which stays empty until a step has tools, and `show`, which is told of each change of the run. */
export function beside() {
  const words = make("p", { class: "small" });
  const element = make("aside", { class: "run-map", "aria-label": "Tools of this run on the map", hidden: "" }, make("h3", { text: "Where its tools are" }), words);
  let drawn = null, last = "";

  async function show(run) {
    const calls = run.steps.flatMap((step) => step.calls);
    const given = new Set([...run.steps.flatMap((step) => step.picked.map((one) => one.tool.id)), ...calls.map((one) => one.tool.id)]);
    const called = new Set(calls.map((one) => one.tool.id)), now = new Set(calls.filter((one) => one.running).map((one) => one.tool.id));
    const key = JSON.stringify([[...given], [...called], [...now]]);
    if (!given.size || key === last) return;
    last = key;
    words.textContent = [`${count(given.size, "tool")} selected`, `${called.size} called`, now.size ? `${now.size} running` : ""].filter(Boolean).join(", ");
    element.hidden = false;
    drawn ??= made();
    (await drawn)?.light(given, now.size ? now : called);
  }

  async function made() {
    try {
      const shown = map(await known());
      element.append(shown.element);
      return shown;
    } catch (error) {
      if (!(error instanceof Overtaken)) words.textContent += `. No map: ${error.message}`;
      return null;
    }
  }

  return { element, show };
}
