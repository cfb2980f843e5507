// Which view is shown, signing in, and where the focus goes.

import { showEvaluations } from "./catalog/reports.js";
import { showSearch } from "./catalog/search.js";
import { alert, announce, count, make, place } from "./common/dom.js";
import { Overtaken, SignIn, ask, forget, keep, keepKey, kept } from "./common/server.js";
import { showReview } from "./review/review.js";
import { leave } from "./runs/conversation.js";
import { showRuns } from "./runs/list.js";
import { forgetMap } from "./start/map.js";
import { showStart } from "./start/start.js";

const VIEWS = { start: showStart, search: showSearch, runs: showRuns, review: showReview, evaluations: showEvaluations };
const TITLES = { start: "Ask", search: "Search", runs: "Runs", review: "Review", evaluations: "Evaluations" };
let overview = null;

async function show() {
  const { view, given } = place();
  if (location.hash === "#main") return;
  const known = Object.hasOwn(VIEWS, view) ? view : "start";
  document.body.dataset.shows = known;
  if (known !== "runs") leave();
  for (const link of document.querySelectorAll("[data-view]"))
    link.dataset.view === known ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  document.title = `${given.get("q") || given.get("node") || given.get("capability") || TITLES[known]} - Callsheet`;
  alert();
  try {
    overview ??= tell(await ask("overview"));
    await VIEWS[known](document.getElementById("view"), given, overview);
  } catch (error) {
    if (error instanceof Overtaken) return;
    if (error instanceof SignIn) signIn(error.message);
    else alert(make("p", { text: `${error.message}.`.replace(/\.\.$/, ".") }));
  }
}

function tell(found) {
  const said = [count(found.agents, "agent"), count(found.tools, "tool"), ...(found.skills ? [count(found.skills, "skill")] : []), `${found.dependencies.toLocaleString("en")} dependenc${found.dependencies === 1 ? "y" : "ies"}`, `${found.inferred.toLocaleString("en")} inferred`];
  document.getElementById("counts").textContent = found.policy ? `${said.join(", ")}; ${found.policy}` : said.join(", ");
  const waiting = found.quarantined ? ` (${found.quarantined.toLocaleString("en")})` : "";
  const review = document.querySelector("[data-view=review]");
  review.textContent = `Review${waiting}`;
  review.setAttribute("aria-label", found.quarantined ? `Review, ${count(found.quarantined, "change")} in quarantine` : "Review");
  const leave = kept() && make("button", { type: "button", text: "Sign out", on: { click: () => { forget(); location.reload(); } } });
  document.getElementById("user").replaceChildren(...[found.user && `Signed in as ${found.user}`, leave].filter(Boolean));
  return found;
}

function signIn(why) {
  overview = null;
  forgetMap();
  const token = make("input", { id: "token", type: "password", autocomplete: "off", required: "", spellcheck: "false" });
  const enter = (event) => { event.preventDefault(); keep(token.value.trim()); show(); };
  document.getElementById("view").replaceChildren(
    make("form", { class: "signin", on: { submit: enter } },
      make("h1", { text: "Who are you?" }),
      make("p", { text: `The server shows each user what that user may see. It says: ${why}` }),
      make("label", { for: "token", text: "Access token" }), token, make("button", { text: "Sign in" }),
      make("p", { class: "small", text: "It is sent as a bearer token and kept until this tab is closed." })));
  announce("The server asks who you are");
  token.focus();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
window.addEventListener("hashchange", show);
document.addEventListener("decided", async () => {
  forgetMap();
  overview = tell(await ask("overview"));
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  const question = document.getElementById("q") ?? document.getElementById("question");
  if (event.key === "/" && !typing && question) { event.preventDefault(); question.focus(); question.select(); }
});
keepKey();
show();
