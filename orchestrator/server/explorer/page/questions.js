// What waits for a person: calls to approve, edit, reject or answer, values to give, questions to answer.

import { announce, args, button, make, walk } from "./dom.js";

const WHY_NOT = "Why not? (the worker reads it)", ALWAYS = "Always for this tool";
const KINDS = {
  tool_approval: ["Approve this call?", approval], unknown_outcome: ["Did this call take effect?", outcome], needs_input: ["A value is missing", values],
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
    make("p", { class: "eyebrow", text: one.step ? `Step ${one.step}` : "The request" }), make("h3", { id: `asks-${one.id}`, text: one.problem && one.kind === "tool_approval" ? "Check this call again" : title }),
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
    settle(one, form === other ? answer : { decisions: [{ ...answer, ...(one.hash && { hash: one.hash }) }] }, words);
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
      const args = parsed(area);
      if (args !== undefined) send(edited(one, args), "Arguments changed: they are checked, and you see the call again");
    });
  };
  const reject = () => asked(body, WHY_NOT, "Reject", again, (message) => send({ type: "reject", message }, "Rejected"));
  const respond = () => asked(body, "What the tool would have answered", "Answer in its place", again, (message) => send({ type: "respond", message }, "Answered in its place"), true);
  const may = (word, ...given) => one.decisions.includes(word) && button(...given);
  return [call(one), row(may("approve", "Approve", () => send({ type: "approve" }, "Approved"), { class: "main" }), one.always && may("approve", ALWAYS, () => send({ type: "approve", always: true }, ALWAYS)), may("edit", "Edit", edit), may("reject", "Reject", reject), may("respond", "Answer for it", respond))];
}

const edited = (one, args) => ({ type: "edit", edited_action: { name: one.name, args } });

function outcome(one, send) {
  const choice = (text, decision, words = text) => button(text, () => send(decision, words));
  return [call(one), row(choice("It was done", { type: "respond", message: "A person says that this call took effect; what it answered is not known." }), choice("It was not: send it again", edited(one, JSON.parse(one.args)), "Sent again"), choice("Give up", { type: "reject" }, "Given up"))];
}

function values(one, send) {
  const inputs = Object.entries(one.fields).map(([name, schema]) => [name, schema, input(schema, `${one.id}-${name}`)]);
  const give = () => {
    const given = {};
    for (const [name, schema, field] of inputs) {
      given[name] = schema.type === "string" || schema.enum ? field.value : parsed(field);
      if (given[name] === undefined) return;
    }
    send(edited(one, given), "Given");
  };
  return [make("div", { class: "fields" }, inputs.map(([name, schema, field]) => make("p", {}, make("label", { for: field.id, text: name }), field, schema.description && make("span", { class: "small", text: String(schema.description) })))),
    row(button("Give", give, { class: "main" }), button("Leave it", () => send({ type: "reject" }, "Left")))];
}

function answer(one, send) {
  const say = (text) => text.trim() && send({ type: "respond", message: text.trim() }, `Answered: ${text.trim()}`);
  const field = make("input", { id: `answer-${one.id}`, "aria-label": "Your answer", autocomplete: "off", on: { keydown: (event) => { if (event.key === "Enter") say(field.value); } } });
  return [one.choices.length > 0 && row(...one.choices.map((choice) => button(choice, () => say(choice)))),
    field, row(button("Answer", () => say(field.value), { class: "main" }), button("Leave it open", () => send({ type: "reject" }, "Left open")))];
}

function other(one, send) {
  const area = make("textarea", { class: "code", rows: "4", "aria-label": "Answer as JSON" });
  return [area, row(button("Answer", () => { const given = parsed(area); if (given !== undefined) send(given, "Answered"); }, { class: "main" }))];
}

function call(one) {
  const list = args(one.args ?? "{}");
  return list?.childElementCount ? list : make("p", { class: "small", text: "It has no arguments." });
}

function input(schema, id) {
  const values = Array.isArray(schema.enum) ? schema.enum.map(String) : schema.type === "boolean" && ["true", "false"];
  if (values) return make("select", { id }, values.map((value) => make("option", { text: value, value })));
  return make("input", { id, autocomplete: "off", placeholder: schema.type !== "string" && `${schema.type ?? "value"}, as JSON` });
}

/** The JSON of a field; undefined with a message if it is none. */
function parsed(field) {
  try {
    field.setCustomValidity("");
    return JSON.parse(field.value);
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
