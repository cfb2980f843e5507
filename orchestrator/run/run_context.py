"""The current run: its user, its settings and its store, on a LangGraph server or in a blocking program."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore

from callsheet.agents import (
    Call,
    ModelReasoner,
    Plan,
    Prompts,
    Reasoner,
    StepResult,
    Supervision,
    ToolRegistry,
    chat_model,
    checkpointer,
    in_threads,
)
from callsheet.agents.approval.supervision import Reviews
from callsheet.agents.calls.call_context import LOOP
from callsheet.agents.calls.credentials import AUTH_USER, configurable_of_run, field_of, is_authenticated
from callsheet.agents.models.chat_models import limit_model_calls
from callsheet.graphs import Catalog, Loaded, Policy, SettingsError, User
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Seen, observed, outcomes_of
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.graphs.trust.open_calls import CallLedger
from callsheet.graphs.trust.policy import counts_outcomes
from callsheet.orchestrator.run.settings import GraphSettings, Settings

T = TypeVar("T")
S = TypeVar("S", bound=GraphSettings)


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Runs asynchronous work inside a blocking run and returns its result."""
    with set_config_context(in_threads(get_config())) as context:
        return context.run(LOOP.blocking, work)


def sync_and_async(
    node: Callable[..., Coroutine[Any, Any, Any]], name: str, app: Runnable[Any, Any] | None = None
) -> RunnableLambda[Any, Any]:
    """Returns an asynchronous node that ``invoke`` can run too, on the background loop.

    Args:
        node: Takes the state, and the app if there is one.
        name: Name in traces.
        app: Called by the node. LangGraph finds it in this closure: it draws the app inside the node, and streams and
            checkpoints it as a part of the run.
    """

    def blocking(state: Any) -> Any:
        return waited_for(node(state, app) if app else node(state))

    async def running(state: Any) -> Any:
        return await (node(state, app) if app else node(state))

    return RunnableLambda(blocking, running, name=name)


Role = Literal["planner", "worker", "answer"]
_STRICTEST = ("always", "ask", "never")
_ANONYMOUS = (
    "{} was requested by a client that is not authenticated, so it stays {}: set CALLSHEET_APPROVAL on "
    "the server, or authenticate its clients"
)
_STORED = "{} is a preference in the store, which others may have written, so it stays {}: set it in the run's context"
_PERMISSIONS = "langgraph_auth_permissions"
PREFERENCES = "preferences"
"""The key of a user's preferences in the user's namespace; the value has fields of ``Settings``."""
_LOG = logging.getLogger(__name__)


def caller() -> User:
    """Returns the user of the current run; an anonymous ``User`` without authentication.

    The server sets ``configurable["langgraph_auth_user"]``, which clients cannot.
    """
    configurable = configurable_of_run()
    return user_of(configurable.get(AUTH_USER), configurable.get(_PERMISSIONS))


def anonymous_client() -> bool:
    """Returns whether an unauthenticated client of a LangGraph server started the current run.

    False in a program that uses the library: only the server sets a user, possibly an anonymous one, and a client
    cannot remove it. With ``langgraph dev`` anybody can pose as Studio, so Studio's user is anonymous.
    """
    configurable = configurable_of_run()
    return AUTH_USER in configurable and not is_authenticated(configurable[AUTH_USER])


def standing_approvals(loaded: Loaded) -> StandingApprovals | None:
    """Returns the permanent approvals of the user of the current run.

    Unauthenticated clients share theirs, and use no others.
    """
    return StandingApprovals.of(loaded.label, None if anonymous_client() else caller().id)


def call_ledger(loaded: Loaded) -> CallLedger:
    """Returns the open calls of the user of the current run; unauthenticated clients share one ledger."""
    return CallLedger(loaded.label, None if anonymous_client() else caller().id)


def user_of(user: object, permissions: object = ()) -> User:
    """Converts the user object of an authentication to a ``User``; without an identity, the user is anonymous.

    It is an object or a mapping with ``identity``, and optionally ``groups`` and ``permissions``, which both become
    groups.
    """
    identity = field_of(user, "identity")
    if not isinstance(identity, str) or not identity:
        return User()
    groups = {*_names(field_of(user, "groups")), *_names(field_of(user, "permissions"))}
    return User(identity, frozenset(groups | _names(permissions)))


def _names(value: object) -> set[str]:
    several = value if isinstance(value, list | tuple | set | frozenset) else ()
    return {item for item in several if isinstance(item, str)}


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Settings, models and prompts of a supervisor; users and runs can override them.

    Attributes:
        models: Chat models given as objects, by role; "decision" may be any decision model.
        preferences: The preferences of the user of the current run.
        reviews: The decisions that the program allows for each tool, from ``interrupt_on``.
    """

    defaults: Settings
    models: Mapping[str, Any]
    prompts: Prompts
    preferences: Settings | None = None
    reviews: Reviews = field(default_factory=dict)

    def of(self, preferences: Mapping[str, Any]) -> RunConfiguration:
        """Returns the configuration with a user's preferences, which must fit ``Settings``."""
        return replace(self, preferences=Settings(**preferences)) if preferences else self

    @property
    def settings(self) -> Settings:
        """Returns the settings of the current run.

        Neither stored preferences nor a client without authentication can reduce the calls that need approval.
        """
        found = self._said()
        if self._refused(found):
            return found.model_copy(update={"approval": self.defaults.approval, "allow": self.defaults.allow})
        return found

    def noted(self, note: str) -> str:
        """Returns the note of a plan with the rejected settings of the current run appended."""
        return "; ".join(filter(None, (note, self._refused(self._said()))))

    def _said(self) -> Settings:
        found = self.defaults
        for one in (self.preferences, context(Settings)):
            found = one.over(found) if one else found
        return found

    def _refused(self, said: Settings) -> str:
        """Returns why less strict approval, or an allowed tool, is rejected.

        Empty if it is not, or if there is none.
        """
        before = self.defaults
        given = context(Settings)
        looser = {
            "approval": _STRICTEST.index(said.approval) > _STRICTEST.index(before.approval),
            "allow": not set(said.allow) <= set(before.allow),
        }
        names = [name for name, is_looser in looser.items() if is_looser]
        if not names:
            return ""
        stored = given is None or not given.model_fields_set.issuperset(names)
        why = _STORED if stored else _ANONYMOUS if anonymous_client() else ""
        asked = ", ".join(f"{name} {getattr(said, name)!r}" for name in names)
        return why.format(asked, ", ".join(repr(getattr(before, name)) for name in names))

    def model(self, role: Role) -> BaseChatModel | None:
        """Returns the chat model for a role in the current run: of its context, the user or the supervisor; else None.

        Its calls in the current node get the timeout of the settings.
        """
        limit_model_calls(self.settings.model_seconds)
        found: BaseChatModel | None = self._model(role, f"{role}_model", "model")
        return found

    def decision(self) -> dict[str, Any]:
        """Returns the decision model of the current run as options of a selection; empty for the retriever's own."""
        model = self._model("decision", "decision_model")
        return {"decision_model": model, "decision_seconds": self.settings.model_seconds} if model else {}

    def _model(self, role: str, *names: str) -> Any:
        """Returns the model for a role, whose first setting counts more; in each place, an object before a name."""
        said = [getattr(one, name) for one in (context(Settings), self.preferences) if one for name in names]
        chosen = next(filter(None, said), None)
        if chosen is None and role in self.models:
            return self.models[role]
        name = chosen or next(filter(None, (getattr(self.defaults, name) for name in names)), None)
        return chat_model(name) if name else None

    def reasoner(self, role: Role) -> Reasoner:
        """Returns what does the work of a role in the current run: a chat model, or the mode without a model."""
        model = self.model(role)
        settings = self.settings
        if model is not None:
            return ModelReasoner(model)
        from callsheet.agents import NoModel

        present = checkpointer() is not None and settings.attended
        return NoModel(present, works=self.model("worker") is None)

    def supervision(self, registry: ToolRegistry, step_id: str = "", run_id: str = "") -> Supervision:
        """Returns how the calls of a step are supervised in the current run."""
        settings = self.settings
        return Supervision(
            step_id,
            settings.approval,
            registry,
            registry.secrets.of(run_id),
            allow=frozenset(settings.allow),
            reviews=self.reviews,
            standing=standing_approvals(registry.loaded),
            ledger=call_ledger(registry.loaded),
        )

    @property
    def someone_present(self) -> bool:
        """Returns whether a person can be asked in the current run."""
        return checkpointer() is not None and self.settings.approval != "never" and self.settings.attended

    @property
    def read_skills(self) -> bool:
        """Returns whether workers can use skills, because they have a model that follows their texts."""
        return self.settings.skill_tokens > 0 and self.model("worker") is not None

    def prompt(self, name: str) -> str:
        """Returns the system prompt with this name (a field of ``Prompts``) in the current run."""
        return getattr(self.settings, f"{name}_prompt", None) or str(getattr(self.prompts, name))


def context(kind: type[S]) -> S | None:
    """Returns the settings with which the current run was started; None if there are none.

    Raises:
        SettingsError: They are those of another kind of graph, and would have no effect.
    """
    runtime: Runtime[Any] | None = get_runtime(kind)
    given = runtime.context if runtime is not None else None
    if isinstance(given, kind):
        return given
    # A graph inside another graph inherits its context, which is not meant for it.
    is_inside = "|" in str(configurable_of_run().get("checkpoint_ns", ""))
    if isinstance(given, GraphSettings) and not is_inside:
        raise SettingsError(f"the context of this graph is {kind.__name__}(...), not {type(given).__name__}(...)")
    return None


def namespace_of(user: str) -> tuple[str, str]:
    """Returns the namespace of a user, which begins with the user's id; full stops in it are escaped."""
    return (user.replace("%", "%25").replace(".", "%2E"), "callsheet")


def store() -> BaseStore | None:
    """Returns the store of the current run; None if the workflow was compiled without one."""
    return get_runtime().store


async def preferences() -> dict[str, Any]:
    """Returns the preferences of the current user: fields of ``Settings``; empty for an anonymous user.

    Raises:
        SettingsError: The stored value is invalid; the message names its place.
    """
    kept = store()
    user = caller().id
    item = await kept.aget(namespace_of(user), PREFERENCES) if kept is not None and user else None
    if item is None:
        return {}
    try:
        return Settings(**item.value).model_dump(mode="json", exclude_unset=True)
    except (SettingsError, TypeError) as error:
        raise SettingsError(f"the preferences of {user!r} in the store ({namespace_of(user)}): {error}") from error


def observed_in(plan: Plan, results: Mapping[str, StepResult], request: str) -> Counter[Seen]:
    """Counts arguments that calls of a run took from the results of calls of earlier steps.

    Only calls of agents count, because what a worker does itself (reading a result, running a program) passes on values
    of others. A value in the user's ``request`` need not come from a tool.
    """
    seen: Counter[Seen] = Counter()
    for step in plan.steps:
        before = [call for name in plan.ancestors(step.id) for call in _of_agents(results[name])]
        before.sort(key=lambda call: call.began)  # steps run side by side, or again
        seen.update(observed(_of_agents(results[step.id]), before=before, said=request))
    return seen


def _of_agents(result: StepResult) -> list[Call]:
    return [call for call in result.calls if call.agent]


async def keep_observed(
    log: ObservationLog,
    plan: Plan,
    results: Mapping[str, StepResult],
    request: str,
    catalog: Catalog,
    policy: Policy | None = None,
) -> None:
    """Stores the observed dependencies of a run and the outcomes of its calls; errors are logged.

    If users are authenticated, nothing is stored unless the policy allows it.
    """
    user = caller()
    if not counts_outcomes(policy, user):
        return

    def count() -> None:
        ended = outcomes_of(call for result in results.values() for call in result.calls)
        OutcomeLog(log.file.sibling(OutcomeLog.name)).add(ended, catalog, user.id)
        seen = observed_in(plan, results, request)
        if seen:
            log.add(seen)

    try:
        await asyncio.to_thread(count)
    except Exception as error:  # noqa: BLE001 a file may be damaged, a disk full
        _LOG.warning("what the calls of a run have shown was not stored: %s", error)
