// What a person accepts or rejects: changes of servers, and inferred dependencies.

import { address, alert, announce, button, count, filterField, make, walk } from "./dom.js";
import { Overtaken, ask, failed, send } from "./server.js";

const PARTS = {
  changes: { title: "Changes", noun: "change", card: change, none: "Nothing waits: all servers say what was accepted.",
    about: "What servers changed since their tools were accepted. Until you accept it, a changed or new tool is neither found nor called." },
  dependencies: { title: "Dependencies", noun: "dependency", card: dependency, none: "No dependency is inferred.",
    about: "What programs infer from names, schemas and observed calls. What you decide wins: an accepted dependency counts like a declared one, a rejected one is gone. Both go to the file of dependencies." },
  allowed: { title: "Allowed", noun: "tool", card: allowed, none: "You have allowed no tool for good.",
    about: "Tools that you have approved for good. A tool whose definition or server changes is asked about again." },
};
const FEW = 8;

export async function showReview(view, given) {
  const part = Object.hasOwn(PARTS, given.get("part") ?? "") ? given.get("part") : "changes";
  const { title, noun, about, card, none } = PARTS[part];
  const list = make("ul", { class: `review-list of-${part}` }), note = make("p", { class: "note", hidden: "" }), total = make("p", { class: "small" });
  const more = button("More", () => load(list.querySelectorAll(":scope > li:not(.moved)").length).catch(failed), { hidden: "" });
  const words = filterField(() => load(0).catch(failed));
  const parts = make("nav", { class: "parts", "aria-label": "Parts of the review" }, Object.entries(PARTS).map(([name, one]) =>
    make("a", { href: address("review", { part: name }), text: one.title, "aria-current": name === part && "page" })));
  const filter = make("p", { class: "filter", hidden: "" }, make("label", { for: "words", text: "With the words" }), words);
  const asked = (start, only = words.value) => ask("review", { part, words: only, start }, "review");
  view.replaceChildren(make("section", { class: "review", "aria-busy": "true" }, make("h1", { text: "Review" }), parts,
    make("h2", { class: "unseen", tabindex: "-1", text: title }), make("p", { class: "about-part", text: about }), note,
    filter, total, list, more));

  async function load(start) {
    const answer = await asked(start);
    note.hidden = !answer.refusal;
    note.textContent = `Nothing can be decided here: ${answer.refusal}.`;
    const items = answer.items.map((one) => item(one, answer));
    if (start) list.append(...items); else list.replaceChildren(...items);
    total.textContent = answer.total ? count(answer.total, noun) : words.value ? "Nothing has these words." : none;
    filter.hidden &&= answer.total <= FEW;
    more.hidden = start + items.length >= answer.total;
    if (start) items[0]?.querySelector("a, button, input")?.focus();
    else announce(`${title}: ${total.textContent}`);
  }

  function item(one, { refusal }) {
    const made = make("li"), before = state(one);
    const fill = () => made.replaceChildren(...[card(one, { may: !refusal, decide })].flat().filter(Boolean));
    /** Sends a decision; `words` find the item again in the list, where it stays. */
    async function decide(decision, words) {
      made.setAttribute("aria-busy", "true");
      try {
        const { told, note: later } = await send("decide", { part, digest: one.digest, ...decision });
        alert(later);
        const next = words && (await asked(0, words)).items.find((other) => same(other, one));
        // What was decided has left its place, so the next page begins earlier.
        made.classList.toggle("moved", !next || state(next) !== before);
        if (next) { one = next; fill(); } else made.replaceChildren(make("p", { class: "settled-text", tabindex: "-1", role: "status" }, make("strong", { text: `${told}${later || part !== "changes" ? "" : ", and used from now on"}.` })));
        announce(told);
        made.querySelector(".settled-text, [data-first]")?.focus();
        document.dispatchEvent(new Event("decided"));
      } catch (error) {
        if (error instanceof Overtaken) return;
        failed(error);
        await load(0);
        view.querySelector("h2").focus();
      } finally {
        made.removeAttribute("aria-busy");
      }
    }
    fill();
    return made;
  }

  try {
    await load(0);
  } finally {
    view.firstElementChild?.removeAttribute("aria-busy");
  }
}

/** What decides about the place of an item in its list. */
const state = (one) => String(one.accept);

const same = (one, other) => one.source?.id === other.source?.id && one.target?.id === other.target?.id && one.parameter === other.parameter;

/** A proposed dependency with its evidence, or one that a person decided about. */
function dependency(one, { may, decide }) {
  const needs = one.required ? "needs" : "may need", open = one.accept === null;
  const name = `${one.source.label} ${needs} ${one.target.label}${one.parameter ? ` for ${one.parameter}` : ""}`;
  const choice = (text, accept, more) => button(text, () => decide({ accept }, `${one.source.id} ${one.target.id}`), { "aria-label": `${text}: ${name}`, ...more });
  return [
    make("p", { class: "edge-line" }, walk(one.source), ` ${needs} `, walk(one.target), one.parameter && [" for ", make("code", { text: one.parameter })]),
    make("p", { class: "words", text: one.evidence || "There is no evidence." }),
    make("p", { class: "small", text: `${Math.floor(100 * one.confidence)} % sure${one.count ? `, observed ${count(one.count, "time")}` : ""}.${open && one.required ? " If you accept it, the second is selected whenever the first is." : ""}` }),
    make("div", { class: "row" }, !open && make("span", { class: `badge ${one.accept ? "done" : "failed"}`, text: one.accept ? "Accepted" : "Rejected" }),
      may && (open ? [choice("Accept", true, { class: "main", "data-first": "" }), choice("Reject", false)] : choice("Undo", null, { "data-first": "" }))),
  ];
}

/** A tool that a person has approved for good. */
function allowed(one, { decide }) {
  return [
    make("p", { class: "edge-line" }, walk(one.tool)),
    make("p", { class: "small", text: `Allowed since ${new Date(one.since).toLocaleString()}.${one.holds ? "" : " It has changed since, so you are asked again."}` }),
    make("div", { class: "row" }, button("Ask again", () => decide({ accept: false }), { "data-first": "", "aria-label": `Ask again before calls of ${one.tool.label}` })),
  ];
}

const KINDS = { new: "New tool", suspect: "Suspect tool", changed: "Changed tool", removed: "Removed tool", command: "Other command", about: "Other description" };

/** A change of a server: the accepted and the present definition side by side, with what changed marked. */
function change(one, { may, decide }) {
  return [
    make("h3", {}, make("span", { class: `badge ${one.quarantines ? "warning" : ""}`, text: KINDS[one.kind] ?? one.kind }), " ", make("code", { text: one.label })),
    make("p", { text: `${one.told}.` }),
    one.digest ? sides(one) : make("p", { class: "note", text: "This definition is too long to be shown here, so it cannot be accepted here: use callsheet approve." }),
    one.digest && may && make("div", { class: "row" }, button(one.kind === "removed" ? "Accept the removal" : "Accept what it is now", () => decide({ accept: true }), { class: "main", "aria-label": `Accept ${one.label}` }),
      make("span", { class: "small", text: one.quarantines ? "Do nothing to leave it in quarantine." : "" })),
  ];
}

function sides(one) {
  const shown = [0, 1].filter((side) => one.lines.some((pair) => pair[side] !== null)), titles = shown.map((side) => ["Accepted", "Now"][side]);
  const row = (pair) => {
    if (pair.every((text) => text === null)) return make("tr", { class: "gap", role: "row" }, make("td", { role: "cell", colspan: String(shown.length), text: "… equal lines …" }));
    const equal = pair[0] === pair[1];
    const cell = (side) => {
      const text = pair[side], tag = ["del", "ins"][side];
      return make("td", { role: "cell", class: equal ? "equal" : text === null ? "none" : tag }, text !== null && (equal ? text : make(tag, {}, marked(text, pair[1 - side]))));
    };
    return make("tr", { class: equal ? "equal" : "changed", role: "row" }, shown.map(cell));
  };
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Definition of ${one.label}` },
    make("table", { class: `sides ${shown.length === 1 ? "single" : ""}`, role: "table" },
      make("caption", { class: "unseen", text: `${one.label}: ${titles.join(" and ")}` }),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, titles.map((text) => make("th", { scope: "col", role: "columnheader", text })))),
      make("tbody", { role: "rowgroup" }, one.lines.map(row))));
}

/** A changed line, with the characters that its other side does not have marked. */
function marked(text, other) {
  if (other === null) return text;
  const mine = [...text], theirs = [...other], most = Math.min(mine.length, theirs.length);
  let start = 0, end = 0;
  while (start < most && mine[start] === theirs[start]) start += 1;
  while (end < most - start && mine.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  if (!start && !end) return text;
  return [mine.slice(0, start).join(""), make("mark", { text: mine.slice(start, mine.length - end).join("") }), mine.slice(mine.length - end).join("")];
}
