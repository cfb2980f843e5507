// What a person accepts or rejects: changes of servers, inferred dependencies, capabilities; and the findings.

import { address, alert, announce, count, make, walk } from "../common/dom.js";
import { Overtaken, ask, send } from "../common/server.js";
import { capabilityCard } from "./capabilities.js";
import { changeCard } from "./changes.js";
import { dependencyCard } from "./dependencies.js";

const PARTS = {
  changes: ["Changes", "change", "What servers changed since their tools were accepted. Until you accept it, a changed or new tool is neither found nor called.", changeCard],
  dependencies: ["Dependencies", "dependency", "What programs infer from names, schemas and observed calls. What you decide wins: an accepted dependency counts like a declared one, a rejected one is gone. Both go to the file of dependencies.", dependencyCard],
  capabilities: ["Capabilities", "tool", "What the text of a tool suggests that it can do. Uncheck what is wrong, add what is missing, and declare: what you declare takes the place of all suggestions.", capabilityCard],
  findings: ["Findings", "finding", "What callsheet check finds. There is nothing to accept: correct it where it is written, or leave a rule out with --ignore RULE.", findingLine],
};
const FEW = 8;
const NONE = { changes: "Nothing waits: all servers say what was accepted.", dependencies: "No dependency is inferred.", capabilities: "There are no tools.", findings: "Nothing is wrong." };

export async function showReview(view, given) {
  const part = Object.hasOwn(PARTS, given.get("part") ?? "") ? given.get("part") : "changes";
  const [title, noun, about, item] = PARTS[part];
  const list = make("ul", { class: `review-list of-${part}` }), note = make("p", { class: "note", hidden: "" });
  const total = make("p", { class: "small" }), more = make("button", { type: "button", text: "More", hidden: "" });
  const again = make("button", { type: "button", text: "Ask the servers again", hidden: "" });
  const words = make("input", { type: "search", id: "words", autocomplete: "off" });
  const parts = make("nav", { class: "parts", "aria-label": "Parts of the review" }, Object.entries(PARTS).map(([name, [label]]) =>
    make("a", { href: address("review", { part: name }), text: label, ...(name === part ? { "aria-current": "page" } : {}) })));
  const filter = make("p", { class: "filter", hidden: "" }, make("label", { for: "words", text: "With the words" }), words);
  view.replaceChildren(make("section", { class: "review", "aria-busy": "true" }, make("h1", { text: "Review" }), parts,
    make("h2", { class: "unseen", tabindex: "-1", text: title }), make("p", { class: "about-part", text: about }), note,
    filter, make("p", { class: "row" }, total, part === "changes" && again), list, more));

  again.addEventListener("click", async () => {
    again.disabled = true;
    try {
      const { note: trouble } = await send("list", {});
      alert(...(trouble ? [make("p", { text: trouble })] : []));
      await load(0);
      document.dispatchEvent(new Event("decided"));
    } catch (error) {
      failed(error);
    } finally {
      again.disabled = false;
      again.focus();
    }
  });
  const asked = (start, only = words.value) => ask("review", { part, words: only, start }, "review");
  async function load(start) {
    const found = await asked(start);
    again.hidden = Boolean(found.refusal);
    note.hidden = !found.refusal || part === "findings";
    note.textContent = `Nothing can be decided here: ${found.refusal}.`;
    const made = found.items.map((one, i) => card(one, found, start ? list.lastElementChild : null, i));
    if (start) list.append(...made); else list.replaceChildren(...made);
    total.textContent = found.total ? plural(found.total, noun) : words.value ? "Nothing has these words." : NONE[part];
    filter.hidden &&= found.total <= FEW;
    more.hidden = start + found.items.length >= found.total;
    if (start) made[0]?.querySelector("a, button, input")?.focus();
    else announce(`${title}: ${total.textContent}`);
  }

  function card(one, found) {
    const made = make("li", {}), before = state(one);
    const decide = async (decision, again) => {
      made.setAttribute("aria-busy", "true");
      try {
        const { told, note: later } = await send("decide", { part, digest: one.digest, ...decision });
        alert(...(later ? [make("p", { text: later })] : []));
        const next = again && (await asked(0, again(one))).items.find((other) => same(other, one));
        // What was decided has left its place, so the next page begins earlier.
        made.classList.toggle("moved", !next || state(next) !== before);
        if (next) { one = next; draw(); } else made.replaceChildren(make("p", { class: "settled-text", tabindex: "-1", role: "status" }, make("strong", { text: `${told}${later || part !== "changes" ? "" : ", and used from now on"}.` })));
        announce(told);
        made.querySelector(".settled-text, [data-first]")?.focus();
        document.dispatchEvent(new Event("decided"));
      } catch (error) {
        if (error instanceof Overtaken) return;
        alert(make("p", { text: error.message }));
        await load(0);
        view.querySelector("h2").focus();
      } finally {
        made.removeAttribute("aria-busy");
      }
    };
    const draw = () => made.replaceChildren(...[item(one, { may: !found.refusal, decide, taxonomy: found.taxonomy })].flat().filter(Boolean));
    draw();
    return made;
  }

  more.addEventListener("click", () => load(list.querySelectorAll(":scope > li:not(.moved)").length).catch(failed));
  let waiting = 0;
  words.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => load(0).catch(failed), 200); });
  try {
    await load(0);
  } finally {
    view.firstElementChild?.removeAttribute("aria-busy");
  }
}

function findingLine(one) {
  return make("p", {}, make("span", { class: `badge ${one.severity}`, text: one.severity }), " ", make("strong", { text: one.rule }), " ",
    one.node && walk(one.node), one.node && ": ", one.message);
}

/** What decides about the place of an item in its list. */
function state(one) {
  return String(one.accept ?? one.capabilities?.some((known) => known.declared));
}

function same(one, other) {
  return (one.tool?.id ?? one.source?.id) === (other.tool?.id ?? other.source?.id) && one.target?.id === other.target?.id && one.parameter === other.parameter;
}

function plural(n, noun) {
  return noun === "dependency" && n !== 1 ? `${n.toLocaleString("en")} dependencies` : count(n, noun);
}

function failed(error) {
  if (!(error instanceof Overtaken)) alert(make("p", { text: error.message }));
}
