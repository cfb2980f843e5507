// The first view: what is to be done, examples, and the graph of all agents and tools.

import { address, alert, make } from "../common/dom.js";
import { begin, composer, leave } from "../runs/conversation.js";

export async function showStart(view, given, overview) {
  leave();
  const asking = overview.asks ? composer("What is to be done?", start) : null;
  const find = make("a", { class: "second", href: address("search"), text: "Search agents and tools" });
  const examples = make("ul", { class: "examples", "aria-label": "Examples" });
  const hero = make("section", { class: "hero" }, make("h1", { text: "What is to be done?" }), asking?.element, examples, make("p", { class: "small" }, find));
  view.replaceChildren(hero);
  asking?.area.focus();

  async function start(text) {
    alert();
    try {
      await begin(text);
    } catch (error) {
      alert(make("p", { text: error.message }));
    }
  }
}
