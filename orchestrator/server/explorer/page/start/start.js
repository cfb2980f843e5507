// The first view: what is to be done, examples, and the graph of all agents and tools.

import { address, alert, announce, count, make } from "../common/dom.js";
import { Overtaken } from "../common/server.js";
import { begin, composer, leave } from "../runs/conversation.js";
import { known, map } from "./map.js";

export async function showStart(view, given, overview) {
  leave();
  const asking = overview.asks ? composer("Ask in your own words", start) : null;
  const find = make("a", { href: address("search"), text: asking ? "Only search for agents and tools" : "Search for agents and tools" });
  const examples = make("ul", { class: "examples", "aria-label": "Examples" });
  const hero = make("section", { class: "hero" }, make("h1", { text: asking ? "What do you want done?" : "Agents and tools" }), asking?.element, examples, !asking && overview.runs && make("p", { class: "small", text: "To ask here, open the whole address that callsheet explore printed: it contains the key." }), make("p", { class: "small" }, find));
  const ground = make("div", { class: "map-place", "aria-busy": "true" });
  view.replaceChildren(make("div", { class: "start" }, hero, ground));
  asking?.area.focus();
  try {
    const found = await known();
    if (!ground.isConnected) return;
    ground.replaceChildren(map(found).element);
    announce(`${count(found.told.agents.length, "agent")}, ${count(found.told.tools.length, "tool")}`);
    if (asking) examples.replaceChildren(...found.told.examples.map((text) => make("li", {}, make("button", { type: "button", text, on: { click: () => asking.fill(text) } }))));
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
  } finally {
    ground.removeAttribute("aria-busy");
  }

  async function start(text) {
    alert();
    try {
      await begin(text);
    } catch (error) {
      alert(make("p", { text: error.message }));
    }
  }
}
