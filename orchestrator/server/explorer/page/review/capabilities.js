// The capabilities of a tool: those that its text suggests, or those that are declared.

import { make, walk } from "../common/dom.js";

export function capabilityCard(one, { may, decide, taxonomy }) {
  const declared = one.capabilities.some((known) => known.declared);
  const boxes = make("div", { class: "choices" }, one.capabilities.map((known) => box(known.id, known.label, known.declared ? "declared" : `${Math.round(100 * known.confidence)} % sure`, true)));
  const other = make("select", { "aria-label": `Another capability of ${one.tool.label}`, on: { change: () => add() } }, make("option", { value: "", text: "Another…" }));
  const fill = () => { if (other.length === 1) other.append(...taxonomy.map(([id, label]) => make("option", { value: id, text: label }))); };
  other.addEventListener("focus", fill);
  other.addEventListener("pointerdown", fill);
  const chosen = () => [...boxes.querySelectorAll("input:checked")].map((input) => input.value);
  const save = make("button", { type: "button", class: "main", "data-first": "", text: declared ? "Declare again" : "Declare", "aria-label": `Declare the capabilities of ${one.tool.label}`, on: { click: () => decide({ capabilities: chosen() }, () => one.tool.id) } });
  function add() {
    const known = [...boxes.querySelectorAll("input")].find((input) => input.value === other.value);
    if (known) known.checked = true;
    else if (other.value) boxes.append(box(other.value, other.selectedOptions[0].textContent, "", true));
    other.value = "";
  }
  function box(id, label, how, checked) {
    const input = make("input", { type: "checkbox", value: id, checked, disabled: !(may && one.writable) });
    return make("label", {}, input, ` ${label}`, how && make("span", { class: "small", text: ` ${how}` }));
  }
  return make("fieldset", { class: "able" }, make("legend", {}, walk(one.tool), declared && [" ", make("span", { class: "badge done", text: "declared" })]),
    one.capabilities.length ? boxes : [make("p", { class: "small", text: "Its text suggests none." }), boxes],
    may && (one.writable ? make("div", { class: "row" }, save, other) : make("p", { class: "small", text: "No catalog of Callsheet's own form has it, so nothing can be declared." })));
}
