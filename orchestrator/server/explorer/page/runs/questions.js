// What waits for a person: calls to approve, edit, reject or answer, values to give, questions to answer.

import { announce, button, fold, make, walk } from "../dom.js";
import { Exact } from "../server.js";

const WHY_NOT = "Why not? (the worker reads it)", ALWAYS = "Always for this tool";
const KINDS = {
  tool_approval: ["Approve this call?", approval], new_tool: ["Accept this new tool?", approval], unknown_outcome: ["Did this call take effect?", outcome], needs_input: ["A value is missing", values],
  question: ["A question for you", answer],
};

/** The cards of all that waits; `decide` gets the answers by the ids of their interrupts. */
export function questions(waiting, decide) {
  const answers = new Map(), all = make("p", { class: "small", role: "status" });
  const interrupts = Object.values(Object.groupBy(waiting, ({ interrupt }) => interrupt));
  /** The answers to the interrupts of which every call is decided. */
  const complete = () => interrupts.filter((calls) => calls.every(({ id }) => answers.has(id))).map((calls) => [calls[0].interrupt, calls.length > 1 ? { decisions: calls.flatMap(({ id }) => answers.get(id).decisions) } : answers.get(calls[0].id)]);
  const finish = () => decide(Object.fromEntries(complete())), proceed = button("Continue", finish, { class: "main" });
  const bar = make("p", { class: "decided", hidden: waiting.length < 2 && "" }, all, proceed);
  /** Takes an answer, or forgets the one of before. */
  const settle = (one, answer, words) => {
    if (answer) answers.set(one.id, answer); else answers.delete(one.id);
    all.textContent = `${answers.size} of ${waiting.length} decided`;
    proceed.disabled = !complete().length;
    if (words) announce(words);
    if (words && answers.size === waiting.length) finish();
  };
  const cards = waiting.map((one) => ({ one, ...card(one, settle) }));
  cards.forEach(({ one }) => settle(one, null));
  const groups = Object.values(Object.groupBy(cards, ({ one }) => subject(one))).map((alike) => (alike.length > 1 ? together(alike, answers) : alike[0].made));
  return make("section", { class: "questions", "aria-label": "Waits for you" }, groups, bar);
}

/** What the approvals of one group have in common; every other question stands alone. */
const subject = (one) => (one.kind === "tool_approval" && one.tool && one.decisions.length ? JSON.stringify([one.tool.id, one.why, one.problem, one.decisions, one.always]) : `id ${one.id}`);

/** The cards of several calls of one tool, below buttons that decide those of them that are not decided yet. */
function together(cards, answers) {
  const title = `${cards.length} calls of ${cards[0].one.tool.label}`, body = make("div", { class: "card-body" });
  const all = (answer, words) => cards.filter(({ one }) => !answers.has(one.id)).forEach(({ send }) => send(answer, words));
  const { decisions, always } = cards[0].one, may = (word) => decisions.includes(word);
  const choose = () => body.replaceChildren(row(may("approve") && button("Approve all", () => all({ type: "approve" }, "Approved"), { class: "main" }), may("approve") && always && button(ALWAYS, () => all({ type: "approve", always }, ALWAYS)), may("reject") && button("Reject all", reject)));
  const reject = () => asked(body, WHY_NOT, "Reject these calls", choose, (message) => { choose(); all({ type: "reject", message }, "Rejected"); });
  choose();
  return make("section", { class: "together", "aria-label": title }, make("div", { class: "together-head" }, make("h3", { class: "words", text: title }), body), cards.map(({ made }) => made));
}

/** A question as a card, and the function that settles it. */
function card(one, settle) {
  const [title, form] = Object.hasOwn(KINDS, one.kind) ? KINDS[one.kind] : ["Waits for a person", other], body = make("div", { class: "card-body" });
  const made = make("article", { class: "card", "aria-labelledby": `asks-${one.id}`, "data-question": one.id },
    make("p", { class: "eyebrow", text: one.step ? `Step ${one.step}` : "The request" }), make("h3", { id: `asks-${one.id}`, text: one.server ? `The server of ${one.server} asks` : one.problem && one.kind === "tool_approval" ? "Check this call again" : title }),
    one.tool && make("p", {}, walk(one.tool), make("span", { class: "small", text: one.tool.about && `  ${one.tool.about}` })),
    make("p", { class: "words", text: one.why ? `Why you are asked: ${one.why}` : one.text }),
    one.problem && make("p", { class: "error words", role: "alert", text: `The last answer was not used: ${one.problem}` }),
    one.unchecked && make("p", { class: "note", text: one.unchecked }), body);
  const undo = () => {
    made.classList.remove("settled");
    settle(one, null);
    controls();
    body.querySelector("button, input, textarea")?.focus();
  };
  const send = (answer, words) => {
    made.classList.add("settled");
    body.replaceChildren(make("p", { class: "settled-text" }, make("strong", { text: words }), " ", button("Undo", undo)));
    settle(one, form === other || answer.values ? answer : { decisions: [{ ...answer, ...(one.hash && { hash: one.hash }) }] }, words);
  };
  const controls = () => body.replaceChildren(...form(one, send, body, controls).flat().filter(Boolean));
  if (one.decisions.length || form === other) controls();
  else body.append(make("p", { class: "small", text: "Somebody who may see the tool has to decide." }));
  return { made, send };
}

function approval(one, send, body, again) {
  const edit = () => {
    const area = make("textarea", { class: "code", rows: String(Math.min(16, one.args.split("\n").length + 1)), spellcheck: "false", "aria-label": "Arguments as JSON" });
    area.value = one.args;
    written(body, area, "Use these arguments", again, () => {
      const args = exact(area);
      if (args) send(edited(one, args), "Arguments changed: they are checked, and you see the call again");
    });
  };
  const reject = () => asked(body, WHY_NOT, "Reject", again, (message) => send({ type: "reject", message }, "Rejected"));
  const respond = () => asked(body, "What the tool would have answered", "Answer in its place", again, (message) => send({ type: "respond", message }, "Answered in its place"), true);
  const may = (word, ...given) => one.decisions.includes(word) && button(...given);
  return [call(one), row(may("approve", "Approve", () => send({ type: "approve" }, "Approved"), { class: "main" }), one.always && may("approve", ALWAYS, () => send({ type: "approve", always: true }, ALWAYS)), may("edit", "Edit", edit), may("reject", "Reject", reject), may("respond", "Answer for it", respond))];
}

/** An edit; its arguments go to the server as text. */
const edited = (one, args) => ({ type: "edit", edited_action: { name: one.name, args } });

function outcome(one, send) {
  const choice = (text, decision, words = text) => button(text, () => send(decision, words));
  return [call(one), row(choice("It was done", { type: "respond", message: "A person says that this call took effect; what it answered is not known." }), choice("It was not: send it again", edited(one, new Exact(one.args)), "Sent again"), choice("Give up", { type: "reject" }, "Given up"))];
}

function values(one, send) {
  const inputs = Object.entries(one.fields).map(([name, field]) => [name, field, input(field, `${one.id}-${name}`)]);
  // As text: the server knows what each of them has to be.
  const give = () => send({ values: Object.fromEntries(inputs.map(([name, , { value }]) => [name, value])) }, "Given");
  return [make("div", { class: "fields" }, inputs.map(([name, { about }, field]) => make("p", {}, make("label", { for: field.id, text: name }), field, about && make("span", { class: "small", text: about })))),
    row(button("Give", give, { class: "main" }), one.server ? button("Decline", () => send({ type: "reject" }, "Declined")) : button("Leave it", () => send({ type: "reject" }, "Left")))];
}

function answer(one, send) {
  const say = (text) => text.trim() && send({ type: "respond", message: text.trim() }, `Answered: ${text.trim()}`);
  const field = make("input", { id: `answer-${one.id}`, "aria-label": "Your answer", autocomplete: "off", on: { keydown: (event) => { if (event.key === "Enter") say(field.value); } } });
  return [one.choices.length > 0 && row(...one.choices.map((choice) => button(choice, () => say(choice)))),
    field, row(button("Answer", () => say(field.value), { class: "main" }), button("Leave it open", () => send({ type: "reject" }, "Left open")))];
}

function other(one, send) {
  const area = make("textarea", { class: "code", rows: "4", "aria-label": "Answer as JSON" });
  return [area, row(button("Answer", () => { const given = exact(area); if (given) send(given, "Answered"); }, { class: "main" }))];
}

/** The arguments as the server wrote them, and all of them where some is left out of that. */
function call(one) {
  if (one.args === "{}") return make("p", { class: "small", text: "It has no arguments." });
  const text = (of) => make("pre", { class: "args", tabindex: "0", "aria-label": "Arguments", text: of });
  return make("div", {}, text(one.shown), one.shown !== one.args && fold("All of it", text(one.args)));
}

function input({ type, choices }, id) {
  // Nothing is chosen until a person chooses.
  if (choices.length) return make("select", { id }, ["", ...choices].map((text) => make("option", { text, value: text })));
  return make("input", { id, autocomplete: "off", placeholder: type !== "string" && type });
}

/** The JSON of a field as it was written; undefined with a message if it is none. */
function exact(field) {
  try {
    field.setCustomValidity("");
    JSON.parse(field.value);
    return new Exact(field.value);
  } catch (error) {
    field.setCustomValidity(`This is not JSON: ${error.message}`);
    field.reportValidity();
    field.addEventListener("input", () => field.setCustomValidity(""), { once: true });
    return undefined;
  }
}

/** Asks for a text, which may be empty unless it is `needed`. */
function asked(body, label, verb, back, done, needed = false) {
  const area = make("textarea", { rows: "3", "aria-label": label, placeholder: label });
  written(body, area, verb, back, () => { if (area.value.trim() || !needed) done(area.value.trim()); else area.focus(); });
}

function written(body, area, verb, back, done) {
  body.replaceChildren(area, row(button(verb, done, { class: "main" }), button("Back", back)));
  area.focus();
}

const row = (...buttons) => make("div", { class: "row" }, buttons);
