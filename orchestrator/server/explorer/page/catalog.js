// A question with the ranked agents and tools and the reasons; the list of all agents.

import { address, announce, button, count, filterField, fold, make, place, said, table, walk } from "./dom.js";
import { showNode } from "./node.js";
import { ask, failed } from "./server.js";

// No number of agents is no limit.
const USUAL = { agents: "", tools: "10" };
let form = null, list = null, details = null, how = null, shown = null, last = null, best = null, first = true;

export async function showSearch(view, given, overview) {
  if (!form?.isConnected) build(view, overview);
  const q = given.get("q") ?? "", budget = Object.fromEntries(Object.entries(USUAL).map(([name, usual]) => [name, given.get(name) ?? usual]).filter(([, value]) => value));
  const wanted = JSON.stringify([q, budget]);
  const node = given.get("node"), capability = given.get("capability"), chosen = node ?? capability;
  const left = chosen === null ? last : null, beside = q && chosen === null && matchMedia("(min-width: 900px)").matches;
  last = chosen;
  view.firstElementChild.classList.toggle("chosen", chosen !== null);
  view.firstElementChild.classList.toggle("beside", Boolean(beside));
  const input = form.querySelector("#q");
  if (input.value.trim() !== q) input.value = q;
  const results = wanted === shown ? null : (q ? answered({ q, ...budget }) : everybody(overview)).then(() => { shown = wanted; });
  const focus = !first && chosen !== null;
  first = false;
  if (beside) { await results; await showNode(details, { node: best, beside }, { focus }); }
  else await Promise.all([results, showNode(details, { node, capability }, { focus })]);
  const marked = chosen ?? (beside ? best : null);
  const links = [...list.querySelectorAll("[data-id]")];
  for (const link of links) link.dataset.id === marked ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  if (left !== null) links.find((link) => link.dataset.id === left)?.focus();
}

function build(view, overview) {
  shown = null;
  list = make("section", { class: "results", "aria-label": "What was found" });
  details = make("section", { class: "details", "aria-label": "Details" });
  how = make("section", { class: "how", "aria-label": "How it was found" });
  form = search();
  const out = overview.left_out;
  view.replaceChildren(make("div", { class: "search" }, form,
    out.length > 0 && make("div", { class: "note" }, fold(`${count(out.length, "thing")} of the catalog left out`, make("ul", {}, out.map((text) => make("li", { text }))))),
    make("div", { class: "columns" }, list, details), how));
}

function search() {
  const { given } = place();
  const number = (id, max) => make("span", {}, make("label", { class: "small", for: id, text: id }),
    make("input", { id, type: "number", min: "1", max, value: given.get(id) ?? USUAL[id], placeholder: USUAL[id] || "any", required: USUAL[id] !== "" && "" }));
  const input = make("input", { id: "q", name: "q", type: "search", placeholder: "What do you want done?", autocomplete: "off", maxlength: "10000" });
  input.value = given.get("q") ?? "";
  const submit = (event) => {
    event.preventDefault();
    const budget = Object.entries(USUAL).map(([id, usual]) => [id, document.getElementById(id).value === usual ? null : document.getElementById(id).value]);
    const to = address("search", { q: input.value.trim(), ...Object.fromEntries(budget) });
    if (to === location.hash) { shown = null; window.dispatchEvent(new HashChangeEvent("hashchange")); } else location.hash = to;
  };
  return make("form", { role: "search", on: { submit } },
    make("h1", { class: "unseen", text: "Search" }),
    make("label", { class: "unseen", for: "q", text: "What do you want done?" }), input,
    make("button", { text: "Find" }), make("span", { class: "budget" }, number("agents", "1000"), number("tools", "128")));
}

async function answered(given) {
  list.setAttribute("aria-busy", "true");
  const began = performance.now();
  try {
    const answer = await ask("search", given, "results");
    const all = answer.agents.reduce((n, agent) => n + agent.tools.length, 0);
    const numbers = [count(answer.agents.length, "agent"), count(all, "tool"), answer.skills.length > 0 && count(answer.skills.length, "skill")].filter(Boolean).join(", ");
    const head = { found: numbers, unsure: `${numbers}; it is not sure that they fit`, nothing_fits: answer.agents.length ? "Nothing fits well" : "Nothing was found" }[answer.verdict];
    const item = (kind, one, ...children) => make("li", { class: kind }, children, bar(one.score), make("p", { class: "about", text: one.link.about }));
    const skill = (one) => item("tool", one, "Skill ", walk(one.link));
    const tool = (one) => {
      const made = item("tool", one, walk(one.link));
      made.append(one.via.length ? make("p", { class: "why small" }, one.required ? "Required by " : "Used by ", one.via.map((link, i) => [i > 0 && " > ", walk(link)]), one.inferred && `; inferred: ${one.inferred}`)
        : make("p", { class: "why small", text: `Why: ${one.why}` }));
      return made;
    };
    const agent = (one, i) => {
      const made = item("agent", one, make("h3", {}, make("span", { class: "rank", "aria-hidden": "true", text: `${i + 1}` }), walk(one.link)));
      made.append(make("p", { class: "why small", text: `Why: score ${one.score.toFixed(2)}${one.why && `, ${one.why}`}` }), ...(one.tools.length ? [make("ul", { class: "tools" }, one.tools.map(tool))] : []));
      return made;
    };
    list.replaceChildren(...[make("h2", { text: head }), answer.order && make("p", { class: "small", text: answer.order })].filter(Boolean),
      ...(answer.skills.length ? [make("ul", { class: "tools" }, answer.skills.map(skill))] : []), make("ol", { class: "agents" }, answer.agents.map(agent)));
    how.replaceChildren(trace(answer));
    performance.measure("callsheet-search", { start: began, end: performance.now() });
    const top = answer.agents[0]?.tools[0] ?? answer.agents[0];
    best = top?.link.id ?? null;
    announce(top ? `${head}. First: ${top.link.label}` : head);
  } finally {
    list.removeAttribute("aria-busy");
  }
}

function bar(score) {
  const made = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  made.firstChild.style.width = `${Math.round(100 * Math.min(1, Math.max(0, score)))}%`;
  return made;
}

const MEASURES = [
  ["score", "How well the name and the description fit the question, by meaning and by words: 1 is best. The bars show it."],
  ["meaning", "The cosine of the two texts' embeddings, and in brackets the place by it."],
  ["words", "The BM25 score of the words that both have: it has no upper bound; and the place by it."],
  ["expected use", "How often a worker is expected to call the tool for this question: tools are picked in this order."],
];

function trace(answer) {
  const rank = (value, at) => (value === null ? "" : `${value.toFixed(2)} (#${at})`);
  const asked = answer.asked.slice(1).map((unit) => make("li", { text: `${unit.kind}: ${unit.text}` }));
  const made = fold("How it was found", make("div", {},
    make("p", { text: `How likely something fits: ${answer.probability?.toFixed(2) ?? "unknown"}, ${answer.reason}.` }),
    answer.notes.map((text) => make("p", { text })),
    asked.length > 0 && [make("p", { text: "The question was taken apart into:" }), make("ul", {}, asked)],
    answer.considered.length > 0 && make("dl", { class: "measures" }, MEASURES.map(([term, text]) => said({ term, text }))),
    answer.considered.length > 0 && table("Considered, best first", ["", "score", "meaning", "words", "expected use"],
      answer.considered.map((one) => [walk(one.link), one.score, rank(one.cosine, one.cosine_rank), rank(one.words, one.words_rank), one.use])),
    answer.cut.length > 0 && table("Left out", ["tool", "score", "why"], answer.cut.map((one) => [walk(one.link), one.score, one.reason]))));
  made.classList.add("trace");
  return made;
}

async function everybody(overview) {
  how.replaceChildren();
  const all = make("ul", { class: "everybody" }), head = make("h2", { text: "All agents" });
  const more = button("More agents", () => load(all.children.length).catch(failed)), words = filterField(() => load(0).catch(failed));
  async function load(start) {
    const part = await ask("agents", { words: words.value, start }, "agents");
    const items = part.items.map((agent) => make("li", {}, walk(agent), make("span", { class: "small", text: ` ${agent.words}` }), make("p", { class: "about", text: agent.about })));
    if (start) all.append(...items); else all.replaceChildren(...items);
    head.textContent = `${count(part.total, "agent")}${words.value && " with these words"}`;
    more.hidden = all.children.length >= part.total;
    if (start) items[0]?.querySelector("a").focus();
    else announce(head.textContent);
  }
  const filter = overview.agents > 10 && make("p", { class: "filter" }, make("label", { for: "words", text: "Agents with the words" }), words);
  list.replaceChildren(...[head, filter, all, more].filter(Boolean));
  await load(0);
}
