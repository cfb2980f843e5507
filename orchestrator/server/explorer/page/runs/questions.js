// What waits for a person: calls to approve, edit, reject or answer, values to give, questions to answer.

import { alert, announce, make, walk } from "../common/dom.js";

const TITLES = { tool_approval: "Approve this call?", unknown_outcome: "Did this call take effect?", needs_input: "A value is missing", question: "A question for you" };

/** The cards of all that waits; `decide` gets the answers by the ids of their questions; without it, nothing can be answered. */
export function questions(waiting, decide) {
  const answers = new Map();
  const all = make("p", { class: "small", role: "status" });
  const proceed = make("button", { type: "button", class: "main", text: "Continue", on: { click: () => finish() } });
  const finish = () => decide(Object.fromEntries(answers)).catch((error) => alert(make("p", { text: error.message })));
  const bar = make("p", { class: "decided" }, all, proceed);
  const tell = () => {
    bar.hidden = waiting.length < 2 || !decide;
    all.textContent = `${answers.size} of ${waiting.length} decided`;
    proceed.disabled = !answers.size;
  };
  const cards = waiting.map((one) => ({ one, ...card(one, decide && ((answer, words) => {
    answers.set(one.id, answer);
    announce(words);
    tell();
    if (answers.size === waiting.length) finish();
  }), () => { answers.delete(one.id); tell(); }) }));
  tell();
  const shown = Object.values(Object.groupBy(cards, ({ one }) => subject(one))).map((alike) => decide && alike.length > 1 ? together(alike, answers) : alike.map(({ made }) => made));
  return make("section", { class: "questions", "aria-label": "Waits for you" }, shown.flat(), bar);
}

/** What the approvals of one group have in common; every other question stands alone. */
function subject(one) {
  return one.kind === "tool_approval" && one.tool && one.decisions.length ? JSON.stringify([one.tool.id, one.why, one.problem]) : `id ${one.id}`;
}

/** The cards of several calls of one tool, below buttons that decide those of them that are not decided yet. */
function together(cards, answers) {
  const title = `${cards.length} calls of ${cards[0].one.tool.label}`;
  const all = (answer, words) => cards.filter(({ one }) => !answers.has(one.id)).forEach(({ send }) => send(answer, words));
  const row = make("div", { class: "card-body" });
  const choose = () => row.replaceChildren(make("div", { class: "row" }, button("Approve all", "main", () => all({ type: "approve" }, "Approved")), button("Reject all", "", reject)));
  const reject = () => asked(row, "Why not? (the worker reads it)", "Reject these calls", choose, (message) => { choose(); all({ type: "reject", message }, "Rejected"); }, false);
  choose();
  return make("section", { class: "together", "aria-label": title }, make("div", { class: "together-head" }, make("h3", { class: "words", text: title }), row), cards.map(({ made }) => made));
}

/** A question as a card, and the function that settles it. */
function card(one, decided, undecided) {
  const title = make("h3", { id: `asks-${one.id}`, text: one.problem && one.kind === "tool_approval" ? "Check this call again" : TITLES[one.kind] ?? "Waits for a person" });
  const body = make("div", { class: "card-body" });
  const made = make("article", { class: "card", "aria-labelledby": `asks-${one.id}`, "data-question": one.id },
    make("p", { class: "eyebrow", text: one.step ? `Step ${one.step}` : "The request" }), title,
    one.tool && make("p", {}, walk(one.tool), make("span", { class: "small", text: one.tool.about ? `  ${one.tool.about}` : "" })),
    make("p", { class: "words", text: one.why ? `Why ${decided ? "you are" : "a person is"} asked: ${one.why}` : one.text }),
    one.problem && make("p", { class: "error words", role: "alert", text: `The last answer was not used: ${one.problem}` }),
    one.unchecked && make("p", { class: "note", text: one.unchecked }), body);
  const send = (answer, words) => {
    made.classList.add("settled");
    body.replaceChildren(make("p", { class: "settled-text" }, make("strong", { text: words }), " ", button("Undo", "", () => {
      made.classList.remove("settled");
      undecided();
      body.replaceChildren(...controls());
      body.querySelector("button, input, textarea")?.focus();
    })));
    decided(one.hash ? { ...answer, hash: one.hash } : answer, words);
  };
  const controls = () => (FORMS[one.kind] ?? other)(one, send, body).flat().filter(Boolean);
  if (!decided) body.append(...(one.args === null ? [] : [args(one)]));
  else body.append(...(one.decisions.length || !(one.kind in FORMS) ? controls() : [make("p", { class: "small", text: "Somebody who may see the tool has to decide." })]));
  return { made, send };
}

const FORMS = { tool_approval: approval, unknown_outcome: outcome, needs_input: values, question: answer };

function approval(one, send, body) {
  const again = () => body.replaceChildren(...approval(one, send, body));
  const edit = () => {
    const area = make("textarea", { class: "code", rows: String(Math.min(16, one.args.split("\n").length + 1)), spellcheck: "false", "aria-label": "Arguments as JSON" });
    area.value = one.args;
    form(body, area, "Use these arguments", again, () => {
      const args = parsed(area);
      if (args !== undefined) send({ type: "edit", args }, "Arguments changed: they are checked, and you see the call again");
    });
  };
  const reject = () => asked(body, "Why not? (the worker reads it)", "Reject", again, (message) => send({ type: "reject", message }, "Rejected"), false);
  const respond = () => asked(body, "What the tool would have answered", "Answer in its place", again, (message) => send({ type: "respond", message }, "Answered in its place"), true);
  return [args(one), make("div", { class: "row" }, button("Approve", "main", () => send({ type: "approve" }, "Approved")), button("Edit", "", edit), button("Reject", "", reject), button("Answer for it", "", respond))];
}

function outcome(one, send) {
  return [args(one), make("div", { class: "row" }, button("It was done", "", () => send({ type: "done" }, "It was done")), button("It was not: send it again", "", () => send({ type: "not_done" }, "Sent again")), button("Give up", "", () => send({ type: "give_up" }, "Given up")))];
}

function values(one, send) {
  const inputs = Object.entries(one.fields).map(([name, schema]) => [name, schema, input(schema, `${one.id}-${name}`)]);
  const give = () => {
    const given = {};
    for (const [name, schema, field] of inputs) {
      const value = schema.type === "string" || schema.enum ? field.value : parsed(field);
      if (value === undefined) return;
      given[name] = value;
    }
    send({ type: "give", values: given }, "Given");
  };
  return [make("div", { class: "fields" }, inputs.map(([name, schema, field]) => make("p", {}, make("label", { for: field.id, text: name }), field, schema.description && make("span", { class: "small", text: String(schema.description) })))),
    make("div", { class: "row" }, button("Give", "main", give), button("Leave it", "", () => send({ type: "leave" }, "Left")))];
}

function answer(one, send) {
  const field = make("input", { id: `answer-${one.id}`, "aria-label": "Your answer", autocomplete: "off" });
  const say = (text) => text.trim() && send({ type: "answer", answer: text.trim() }, `Answered: ${text.trim()}`);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") say(field.value); });
  return [one.choices.length > 0 && make("div", { class: "row" }, one.choices.map((choice) => button(choice, "", () => say(choice)))),
    field, make("div", { class: "row" }, button("Answer", "main", () => say(field.value)), button("Leave it open", "", () => send({ type: "leave" }, "Left open")))];
}

function other(one, send, body) {
  const area = make("textarea", { class: "code", rows: "4", "aria-label": "Answer as JSON" });
  return [area, make("div", { class: "row" }, button("Answer", "main", () => { const given = parsed(area); if (given !== undefined) send(given, "Answered"); }))];
}

function args(one) {
  const given = JSON.parse(one.args ?? "{}");
  const rows = Object.entries(given).map(([name, value]) => make("div", { class: "arg" }, make("dt", { text: name }), make("dd", {}, make("pre", { tabindex: "0", text: typeof value === "string" ? value : JSON.stringify(value, null, 2) }))));
  return rows.length ? make("dl", { class: "args", "aria-label": "Arguments" }, rows) : make("p", { class: "small", text: "It has no arguments." });
}

function input(schema, id) {
  if (Array.isArray(schema.enum)) return make("select", { id }, schema.enum.map((one) => make("option", { text: String(one), value: String(one) })));
  if (schema.type === "boolean") return make("select", { id }, ["true", "false"].map((one) => make("option", { text: one, value: one })));
  return make("input", { id, autocomplete: "off", ...(schema.type === "string" ? {} : { placeholder: `${schema.type ?? "value"}, as JSON` }) });
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

function asked(body, label, verb, back, done, needed) {
  const area = make("textarea", { rows: "3", "aria-label": label, placeholder: label });
  form(body, area, verb, back, () => { if (area.value.trim() || !needed) done(area.value.trim()); else area.focus(); });
}

function form(body, area, verb, back, done) {
  body.replaceChildren(area, make("div", { class: "row" }, button(verb, "main", done), button("Back", "", back)));
  area.focus();
}

function button(text, kind, click) {
  return make("button", { type: "button", text, class: kind || undefined, on: { click } });
}
