"""What holds in a run: what its context says, over what its user prefers, over what the supervisor was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import Runtime, get_runtime

from callsheet.agents import Prompts, chat_model
from callsheet.orchestrator.run.current_user import anonymous_client
from callsheet.orchestrator.run.settings import Settings

Role = Literal["planner", "worker", "answer"]
_STRICTEST = ("always", "risky", "never")
_ANONYMOUS = (
    "approval {!r} was asked for by a client that is not authenticated, so it stays {!r}: set CALLSHEET_APPROVAL on "
    "the server, or authenticate its clients"
)
_STORED = (
    "approval {!r} is a preference in the store, which others may have written, so it stays {!r}: say so in the run's "
    "context"
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Settings, models and prompts of a supervisor; each can be said otherwise by a user, and for a run.

    Attributes:
        defaults: What holds unless something else is said.
        models: Chat models given as objects, by role.
        prompts: The system prompts.
        preferences: What the user of the current run prefers (fields of ``Settings``).
    """

    defaults: Settings
    models: Mapping[str, BaseChatModel]
    prompts: Prompts
    preferences: Settings | None = None

    def of(self, preferences: Mapping[str, Any]) -> Choices:
        """The same for a user with these preferences, which must fit ``Settings``."""
        return Choices(self.defaults, self.models, self.prompts, Settings(**preferences)) if preferences else self

    @property
    def settings(self) -> Settings:
        """What holds in the current run.

        Calls that a person is asked about stay so, whatever the store says, or a client that is not authenticated.
        """
        found = self._said()
        return found.model_copy(update={"approval": self.defaults.approval}) if self._refused(found) else found

    def noted(self, note: str) -> str:
        """The note of a plan, with what was said for the current run and does not hold."""
        return "; ".join(filter(None, (note, self._refused(self._said()))))

    def _said(self) -> Settings:
        found = self.defaults
        for one in (self.preferences, context()):
            found = one.over(found) if one else found
        return found

    def _refused(self, said: Settings) -> str:
        """Why fewer calls are not asked about than by default; empty where they are not, or may be."""
        if _STRICTEST.index(said.approval) <= _STRICTEST.index(self.defaults.approval):
            return ""
        given = context()
        stored = given is None or "approval" not in given.model_fields_set
        why = _STORED if stored else _ANONYMOUS if anonymous_client() else ""
        return why.format(said.approval, self.defaults.approval)

    def model(self, role: Role) -> BaseChatModel | None:
        """The chat model for a role in the current run: of the context, the user, the supervisor itself, or none."""
        field = f"{role}_model"
        said = [getattr(one, name) for one in (context(), self.preferences) if one for name in (field, "model")]
        chosen = next(filter(None, said), None)
        if chosen is None and role in self.models:
            return self.models[role]
        name = chosen or getattr(self.defaults, field) or self.defaults.model
        return chat_model(name) if name else None

    def prompt(self, name: str) -> str:
        """The system prompt of this name (a field of ``Prompts``) in the current run."""
        return getattr(self.settings, f"{name}_prompt", None) or str(getattr(self.prompts, name))


def context() -> Settings | None:
    """The context that the caller gave for the current run; none where a state is changed without a run."""
    runtime: Runtime[Settings] | None = get_runtime(Settings)
    given = runtime.context if runtime is not None else None
    return given if isinstance(given, Settings) else None
