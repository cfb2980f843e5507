// A proposed dependency with its evidence, or one that a person decided about.

import { count, make, walk } from "../common/dom.js";

export function dependencyCard(one, { may, decide }) {
  const needs = one.required ? "needs" : "may need";
  const name = `${one.source.label} ${needs} ${one.target.label}${one.parameter ? ` for ${one.parameter}` : ""}`;
  const again = () => `${one.source.id} ${one.target.id}`;
  const button = (text, accept, kind) => make("button", { type: "button", class: kind, text, "aria-label": `${text}: ${name}`, on: { click: () => decide({ accept }, again) } });
  const open = one.accept === null;
  const buttons = open ? [button("Accept", true, "main"), button("Reject", false)] : [button("Undo", null)];
  buttons[0].dataset.first = "";
  return [
    make("p", { class: "edge-line" }, walk(one.source), ` ${needs} `, walk(one.target), ...(one.parameter ? [" for ", make("code", { text: one.parameter })] : [])),
    make("p", { class: "words", text: one.evidence || "There is no evidence." }),
    make("p", { class: "small", text: `${Math.floor(100 * one.confidence)} % sure${one.count ? `, observed ${count(one.count, "time")}` : ""}.${open && one.required ? " If you accept it, the second is selected whenever the first is." : ""}` }),
    make("div", { class: "row" }, !open && make("span", { class: `badge ${one.accept ? "done" : "failed"}`, text: one.accept ? "Accepted" : "Rejected" }), may && buttons),
  ];
}
