"""An evaluation as one self-contained HTML page, with the trace of every attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from callsheet.graphs.text.sanitizing import shown
from callsheet.orchestrator.apps.model_evaluation.grading import CAUSES
from callsheet.orchestrator.apps.model_evaluation.model_evaluator import ArmResult, Graded, ModelEvaluation

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d8dade, #3a3d44); --soft: light-dark(#5b616b, #a5abb5);
  --bar: light-dark(#2f6fdf, #7aa7ff); --bad: light-dark(#b3261e, #ff8a80); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .35rem .6rem; text-align: right;
  border-bottom: 1px solid var(--line); } td:first-child, th:first-child { text-align: left; }
th { font-weight: 600; color: var(--soft); } .scroll { overflow-x: auto; } .soft { color: var(--soft); }
.bar { display: inline-block; height: .6rem; background: var(--bar); border-radius: 2px; vertical-align: middle; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; font-size: .85rem; } .bad { color: var(--bad); }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def evaluation_page(evaluation: ModelEvaluation) -> str:
    """The page: a table of the arms, failures by cause, and every request with what each arm did.

    It has no script and uses no network. Texts of models and servers are inserted as text only.
    """
    return "\n".join(_page(evaluation))


def _page(evaluation: ModelEvaluation) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(evaluation.model)}: evaluation by Callsheet</title><style>{_STYLE}</style>"
    yield f"<h1>{_text(evaluation.model)}</h1>"
    if evaluation.stopped:
        yield f'<p class="bad">Not all requests were attempted: {_text(evaluation.stopped)}.</p>'
    yield '<div class="scroll"><table><tr><th scope="col">arm<th scope="col">right<th scope="col">95 % interval'
    yield f'<th scope="col">against {_text(evaluation.arms[0].arm)}<th scope="col">model calls'
    yield '<th scope="col">input tokens<th scope="col">cached<th scope="col">output<th scope="col">seconds'
    yield f"{'<th scope=col>cost' if evaluation.price else ''}</tr>"
    for arm, plain in zip(evaluation.arms, evaluation.to_dict()["arms"], strict=True):
        yield _row(evaluation, arm, plain)
    yield "</table></div><p class=soft>Tokens and calls are means per request, seconds a median, the cost is the sum. "
    yield "Differences are paired, with 95 % bootstrap intervals over requests.</p>"
    yield from _causes(evaluation)
    yield "<h2>Requests</h2>"
    for cases in _by_query(evaluation):
        yield from _request(cases)


def _row(evaluation: ModelEvaluation, arm: ArmResult, plain: Mapping[str, Any]) -> str:
    low, high = plain["interval"]
    mean, less, more = plain["difference"]
    bar = f'<span class="bar" style="width:{arm.success * 6:.2f}rem"></span>'
    against = "" if arm is evaluation.arms[0] else f"{mean:+.3f} [{less:+.3f}, {more:+.3f}]"
    cost = f"<td>{plain['cost']:.4f}" if plain["cost"] is not None else ""
    return (
        f"<tr><td>{_text(arm.arm)}<td>{bar} {arm.success:.3f}<td>{low:.3f} - {high:.3f}<td>{against}"
        f"<td>{plain['model_calls']:.1f}<td>{plain['input_tokens']:,.0f}<td>{plain['cached_tokens']:,.0f}"
        f"<td>{plain['output_tokens']:,.0f}<td>{plain['seconds']:.1f}{cost}</tr>"
    )


def _causes(evaluation: ModelEvaluation) -> Iterator[str]:
    found = [(meaning, cause, [arm.causes[cause] for arm in evaluation.arms]) for cause, meaning in CAUSES.items()]
    if not any(any(counts) for _, _, counts in found):
        return
    yield '<h2>Failures by cause</h2><div class="scroll"><table><tr><th scope="col">cause'
    yield "".join(f'<th scope="col">{_text(arm.arm)}' for arm in evaluation.arms)
    for meaning, cause, counts in found:
        if any(counts):
            cells = "".join(f"<td>{count or ''}" for count in counts)
            yield f"<tr><td>{cause}: <span class=soft>{meaning}</span>{cells}"
    yield "</table></div>"


def _by_query(evaluation: ModelEvaluation) -> Iterator[list[tuple[str, Graded]]]:
    queries = dict.fromkeys(case.case.id for arm in evaluation.arms for case in arm.cases)
    of = {(arm.arm, case.case.id): case for arm in evaluation.arms for case in arm.cases}
    for query in queries:
        yield [(arm.arm, of[arm.arm, query]) for arm in evaluation.arms if (arm.arm, query) in of]


def _request(cases: list[tuple[str, Graded]]) -> Iterator[str]:
    first = cases[0][1].case
    verdicts = ", ".join(f"{_text(arm)}: {case.grade.cause or 'right'}" for arm, case in cases)
    yield f"<details><summary>{_text(first.request)} <span class=soft>({verdicts})</span></summary>"
    yield f"<p>Wanted: <code>{_text(first.wanted)}</code></p>"
    for arm, case in cases:
        attempt = case.attempt
        yield f"<h3>{_text(arm)}: <span class={'soft' if case.grade.right else 'bad'}>"
        yield f"{case.grade.cause or 'right'}</span></h3>"
        lines = [case.grade.detail] if case.grade.detail else []
        lines += [f"step: {step}" for step in attempt.steps]
        lines += [f"shown {len(attempt.offered)} tools: {', '.join(attempt.offered[:20])}"]
        lines += [f"call {call.tool} {json.dumps(dict(call.args), ensure_ascii=False)}" for call in attempt.calls]
        lines += [f"   {call.error}" for call in attempt.calls if call.error]
        lines += [f"ended by: {attempt.stopped}"] if attempt.stopped else []
        lines += [f"answer: {attempt.answer}"] if attempt.answer else []
        yield "<pre>" + "\n".join(map(_text, lines)) + "</pre>"
    yield "</details>"


def _text(text: str) -> str:
    return escape(shown(text))
