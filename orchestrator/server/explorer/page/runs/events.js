// A run as its events tell it: those that the command line prints, as the server sends them to this user.

const RUN = { id: "", request: "", status: "running", began: null, elapsed: 0, since: 0, seconds: null, note: "", answer: "", trouble: "", questions: [], revisions: [], steps: [], usage: null, roles: [] };
const STEP = { status: "waiting", asking: false, calls: [], picked: [], notes: [], added: [], result: "", note: "", error: "", usage: null };
/** What a step needs, by the kind of the question about it; everything else is a value. */
const NEEDS = { tool_approval: "needs_approval", new_tool: "needs_approval", unknown_outcome: "outcome_unknown" };

/** A run after one more event; a request takes the place of the one before. */
export const after = (run, event) => (Object.hasOwn(TAKES, event.event) ? TAKES[event.event](run, event) : run);

/** The run that so many events tell. */
export const told = (events) => events.reduce(after, RUN);

/** For how many seconds a run has gone on, or went on. */
export const clock = (run) => (run.status === "running" ? run.elapsed + (performance.now() - run.since) / 1000 : run.seconds);

const TAKES = {
  request: (run, { id, text, began, seconds }) => ({ ...RUN, id, request: text, began, elapsed: seconds ?? 0, since: performance.now() }),
  // A run is continued: nothing waits any more.
  running: (run) => ({ ...run, status: "running", questions: [], answer: "", trouble: "", steps: run.steps.map((one) => (one.asking ? { ...one, status: "waiting", asking: false } : one)) }),
  plan: (run, { steps, note }) => planned({ ...run, note }, steps),
  revision,
  picked: (run, { step_id, tools, notes, error }) => step(run, step_id, (one) => ({ ...(one.status === "running" ? {} : { ...STEP, usage: one.usage }), status: "running", picked: tools, notes, error })),
  added: (run, { step_id, what, tools }) => step(run, step_id, ({ added }) => ({ added: [...added, { what, tools }] })),
  tool_started: (run, { step_id, call }) => step(run, step_id, ({ calls }) => ({ status: "running", calls: [...calls.filter(({ id }) => id !== call.id), call] })),
  progress: (run, { step_id, call_id, text }) => calls(run, step_id, (one) => (call_id ? one.id === call_id : one.running), { progress: text }),
  tool_finished: (run, { step_id, call_id, answer, error, kind, effect, seconds }) => calls(run, step_id, ({ id }) => id === call_id, { answer, error, kind, effect, seconds, running: false }),
  step: (run, { step_id, status, result, note, error, calls }) => step(run, step_id, () => ({ status, result, note, error, calls })),
  withheld: (run, { step_id, status, error }) => step(run, step_id, () => ({ ...STEP, status, error })),
  usage: (run, { total, roles, steps }) => ({ ...run, usage: total, roles, steps: run.steps.map((one) => ({ ...one, usage: steps[one.id] ?? null })) }),
  draft: (run, { text }) => ({ ...run, answer: run.answer + text }),
  answer: (run, { text }) => ({ ...run, answer: text }),
  question: (run, asked) => step({ ...run, questions: [...run.questions, asked] }, asked.step, (one) => (isOpen(one) ? { status: NEEDS[asked.kind] ?? "needs_input", asking: true } : {})),
  trouble: (run, { text }) => (run.status === "running" ? ended({ ...run, trouble: text }, "stopped", clock(run)) : { ...run, trouble: text }),
  end: (run, { status, seconds }) => ended(run, status, seconds),
};

const isOpen = ({ status }) => status === "running" || status === "waiting";

/** The run with one of its steps changed; `change` gets the step and returns its new fields. */
const step = (run, id, change) => ({ ...run, steps: run.steps.map((one) => (one.id === id ? { ...one, ...change(one) } : one)) });

/** The run with `fields` in the calls of a step that `which` chooses. */
const calls = (run, id, which, fields) => step(run, id, (one) => ({ calls: one.calls.map((call) => (which(call) ? { ...call, ...fields } : call)) }));

/** The run with the steps of a plan; one that it had already keeps what is known of it, unless it is in `changed`. */
function planned(run, steps, changed = []) {
  const known = new Map(run.steps.filter(({ id }) => !changed.includes(id)).map((one) => [one.id, one]));
  return { ...run, steps: steps.map((one) => ({ ...STEP, ...known.get(one.id), ...one })) };
}

/** A changed plan. One that a state has told is told without steps: the plan of the state is the one after it. */
function revision(run, { event, steps, ...one }) {
  const key = JSON.stringify(one), isKnown = run.revisions.some((other) => JSON.stringify(other) === key);
  const revised = isKnown ? run : { ...run, revisions: [...run.revisions, one] };
  return steps.length ? planned(revised, steps, one.changed.map(({ id }) => id)) : revised;
}

/** The run at its end; what its unfinished steps have begun is not known any more. */
const ended = (run, status, seconds) => ({ ...run, status, seconds, steps: run.steps.map((one) => (one.status === "running" ? { ...one, status: "waiting", calls: [] } : one)) });
