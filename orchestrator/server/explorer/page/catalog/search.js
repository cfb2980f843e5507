// A question, the ranked agents and tools with the reasons, and the list of all agents.

import { Overtaken, ask } from "../common/server.js";
import { address, alert, announce, count, fold, make, place, table, walk } from "../common/dom.js";
import { showNode } from "./node.js";

let form = null, list = null, details = null, how = null, shown = null, last = null, best = null, first = true;

export async function showSearch(view, given, overview) {
  if (!form?.isConnected) build(view, overview);
  const q = given.get("q") ?? "", agents = given.get("agents") ?? "5", tools = given.get("tools") ?? "10";
  const wanted = JSON.stringify([q, agents, tools]);
  const node = given.get("node"), capability = given.get("capability"), chosen = node ?? capability;
  const left = chosen === null ? last : null, beside = q && chosen === null && matchMedia("(min-width: 900px)").matches;
  last = chosen;
  view.firstElementChild.classList.toggle("chosen", chosen !== null);
  view.firstElementChild.classList.toggle("beside", beside);
  const input = form.querySelector("#q");
  if (input.value.trim() !== q) input.value = q;
  const results = wanted === shown ? null : (q ? found(q, agents, tools) : everybody(overview)).then(() => { shown = wanted; });
  const focus = !first && chosen !== null;
  first = false;
  if (beside) { await results; await showNode(details, { node: best, beside }, { focus }); }
  else await Promise.all([results, showNode(details, { node, capability }, { focus })]);
  mark(chosen ?? (beside ? best : null));
  if (left !== null) [...list.querySelectorAll("[data-id]")].find((link) => link.dataset.id === left)?.focus();
}

function mark(id) {
  for (const link of list.querySelectorAll("[data-id]"))
    link.dataset.id === id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
}

function build(view, overview) {
  shown = null;
  list = make("section", { class: "results", "aria-label": "What was found" });
  details = make("section", { class: "details", "aria-label": "Details" });
  form = search();
  how = make("section", { class: "how", "aria-label": "How it was found" });
  view.replaceChildren(make("div", { class: "search" }, form, leftOut(overview), make("div", { class: "columns" }, list, details), how));
}

function search() {
  const { given } = place();
  const number = (id, label, value, most) => make("span", {}, make("label", { class: "small", for: id, text: label }),
    make("input", { id, type: "number", min: "1", max: most, value, required: "" }));
  const input = make("input", { id: "q", name: "q", type: "search", placeholder: "What do you want done?", autocomplete: "off", maxlength: "10000" });
  input.value = given.get("q") ?? "";
  const submit = (event) => {
    event.preventDefault();
    const budget = (id, usual) => (document.getElementById(id).value === usual ? null : document.getElementById(id).value);
    const to = address("search", { q: input.value.trim(), agents: budget("agents", "5"), tools: budget("tools", "10") });
    if (to === location.hash) { shown = null; window.dispatchEvent(new HashChangeEvent("hashchange")); } else location.hash = to;
  };
  return make("form", { role: "search", on: { submit } },
    make("h1", { class: "unseen", text: "Search" }),
    make("label", { class: "unseen", for: "q", text: "What do you want done?" }), input,
    make("button", { text: "Find" }),
    make("span", { class: "budget" }, number("agents", "agents", given.get("agents") ?? "5", "50"), number("tools", "tools", given.get("tools") ?? "10", "128")));
}

function leftOut(overview) {
  if (!overview.left_out.length) return null;
  const lines = make("ul", {}, overview.left_out.map((text) => make("li", { text })));
  return make("div", { class: "note" }, fold(`${count(overview.left_out.length, "thing")} of the catalog left out`, lines));
}

async function found(q, agents, tools) {
  list.setAttribute("aria-busy", "true");
  const began = performance.now();
  try {
    const answer = await ask("search", { q, agents, tools }, "results");
    const all = answer.agents.reduce((n, agent) => n + agent.tools.length, 0);
    const skills = answer.skills.length ? `, ${count(answer.skills.length, "skill")}` : "";
    const head = answer.fits ? `${count(answer.agents.length, "agent")}, ${count(all, "tool")}${skills}` : answer.agents.length ? "Nothing fits well" : "Nothing was found";
    list.replaceChildren(
      make("h2", { text: head }),
      make("p", { class: "small", text: `searched in ${answer.milliseconds} ms` }),
      ...(answer.skills.length ? [make("ul", { class: "tools" }, answer.skills.map(skillFound))] : []),
      make("ol", { class: "agents" }, answer.agents.map((agent, i) => agentFound(agent, i))));
    how.replaceChildren(trace(answer));
    performance.measure("callsheet-search", { start: began, end: performance.now() });
    const top = answer.agents[0]?.tools[0] ?? answer.agents[0];
    best = top?.link.id ?? null;
    announce(top ? `${head}. First: ${top.link.label}` : head);
  } finally {
    list.removeAttribute("aria-busy");
  }
}

function agentFound(agent, i) {
  return make("li", { class: "agent" },
    make("h3", {}, make("span", { class: "rank", "aria-hidden": "true", text: `${i + 1}` }), walk(agent.link)),
    bar(agent.score), make("p", { class: "about", text: agent.link.about }),
    make("p", { class: "why small", text: `Why: score ${agent.score.toFixed(2)}${agent.why ? `, ${agent.why}` : ""}` }),
    agent.tools.length > 0 && make("ul", { class: "tools" }, agent.tools.map(toolFound)));
}

function skillFound(skill) {
  return make("li", { class: "tool" }, "Skill ", walk(skill.link), bar(skill.score), make("p", { class: "about", text: skill.link.about }));
}

function toolFound(tool) {
  const came = tool.via.length > 0 && make("p", { class: "why small" }, tool.required ? "Required by " : "Used by ",
    tool.via.flatMap((link, i) => (i ? [" > ", walk(link)] : [walk(link)])),
    tool.inferred && `; inferred: ${tool.inferred}`);
  return make("li", { class: "tool" }, walk(tool.link), bar(tool.score),
    make("p", { class: "about", text: tool.link.about }),
    came || make("p", { class: "why small", text: `Why: ${tool.why}` }));
}

function bar(score) {
  const made = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  made.firstChild.style.width = `${Math.round(100 * Math.min(1, Math.max(0, score)))}%`;
  return made;
}

function trace(answer) {
  const rank = (value, at) => (value === null ? "" : `${value.toFixed(2)} (#${at})`);
  const asked = answer.asked.slice(1).map((unit) => make("li", { text: `${unit.kind}: ${unit.text}` }));
  const made = fold("How it was found", make("div", {},
    make("p", { text: `The best score is ${answer.strength.toFixed(2)}; below ${answer.threshold.toFixed(2)} nothing fits.` }),
    answer.notes.map((text) => make("p", { text })),
    asked.length > 0 && [make("p", { text: "The question was taken apart into:" }), make("ul", {}, asked)],
    answer.considered.length > 0 && table("Considered, best first", ["", "score", "meaning", "words", "expected use"],
      answer.considered.map((one) => [walk(one.link), one.score, rank(one.cosine, one.cosine_rank), rank(one.words, one.words_rank), one.use])),
    answer.cut.length > 0 && table("Left out", ["tool", "score", "why"], answer.cut.map((one) => [walk(one.link), one.score, one.reason]))));
  made.classList.add("trace");
  return made;
}

function failed(error) {
  if (!(error instanceof Overtaken)) alert(make("p", { text: error.message }));
}

async function everybody(overview) {
  how.replaceChildren();
  const all = make("ul", { class: "everybody" });
  const more = make("button", { type: "button", text: "More agents" });
  const head = make("h2", { text: "All agents" });
  const words = make("input", { type: "search", id: "words", autocomplete: "off" });
  const load = async (start) => {
    const part = await ask("agents", { words: words.value, start }, "agents");
    const items = part.items.map((agent) => make("li", {}, walk(agent), make("span", { class: "small", text: ` ${agent.words}` }), make("p", { class: "about", text: agent.about })));
    if (start) all.append(...items); else all.replaceChildren(...items);
    head.textContent = words.value ? `${count(part.total, "agent")} with these words` : count(part.total, "agent");
    more.hidden = all.children.length >= part.total;
    if (start) items[0]?.querySelector("a").focus();
    else announce(head.textContent);
  };
  more.addEventListener("click", () => load(all.children.length).catch(failed));
  let waiting = 0;
  words.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => load(0).catch(failed), 200); });
  const filter = overview.agents > 10 && make("p", { class: "filter" }, make("label", { for: "words", text: "Agents with the words" }), words);
  list.replaceChildren(...[head, filter, all, more].filter(Boolean));
  await load(0);
}
