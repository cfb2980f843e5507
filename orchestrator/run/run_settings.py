"""Settings of a run: from its context, else from the user's preferences, else from the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import Runtime, get_runtime

from callsheet.agents import Prompts, chat_model, checkpointer
from callsheet.agents.models.chat_models import limit_model_calls
from callsheet.agents.models.prompts import WEAK_WORKER, WORKER
from callsheet.agents.programs.sandbox import check_installed
from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.current_user import anonymous_client
from callsheet.orchestrator.run.settings import Settings

Role = Literal["planner", "worker", "answer"]
_STRICTEST = ("always", "risky", "never")
_ANONYMOUS = (
    "approval {!r} was requested by a client that is not authenticated, so it stays {!r}: set CALLSHEET_APPROVAL on "
    "the server, or authenticate its clients"
)
_STORED = (
    "approval {!r} is a preference in the store, which others may have written, so it stays {!r}: set it in the run's "
    "context"
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Settings, models and prompts of a supervisor; users and runs can override them.

    Attributes:
        defaults: Settings of the supervisor.
        models: Chat models given as objects, by role.
        preferences: Preferences of the user of the current run (fields of ``Settings``).
    """

    defaults: Settings
    models: Mapping[str, BaseChatModel]
    prompts: Prompts
    preferences: Settings | None = None

    def of(self, preferences: Mapping[str, Any]) -> Choices:
        """The same with a user's preferences, which must fit ``Settings``."""
        return Choices(self.defaults, self.models, self.prompts, Settings(**preferences)) if preferences else self

    @property
    def settings(self) -> Settings:
        """The settings of the current run.

        Neither stored preferences nor a client without authentication can reduce the calls that need approval.
        """
        found = self._said()
        return found.model_copy(update={"approval": self.defaults.approval}) if self._refused(found) else found

    def check_code_mode(self) -> None:
        """Checks that programs can be run, if the run wants any.

        Raises:
            SettingsError: There is no model to write them, or the extra ``code`` is not installed.
        """
        if not self.settings.code_mode:
            return
        if self.model("worker") is None:
            raise SettingsError("code mode needs a model for the workers: rules cannot write programs")
        check_installed()

    def noted(self, note: str) -> str:
        """The note of a plan, with the settings of the current run that were rejected."""
        return "; ".join(filter(None, (note, self._refused(self._said()))))

    def _said(self) -> Settings:
        found = self.defaults
        for one in (self.preferences, context()):
            found = one.over(found) if one else found
        return found

    def _refused(self, said: Settings) -> str:
        """Why a less strict approval policy is rejected; empty if it is not, or if there is none."""
        if _STRICTEST.index(said.approval) <= _STRICTEST.index(self.defaults.approval):
            return ""
        given = context()
        stored = given is None or "approval" not in given.model_fields_set
        why = _STORED if stored else _ANONYMOUS if anonymous_client() else ""
        return why.format(said.approval, self.defaults.approval)

    def model(self, role: Role) -> BaseChatModel | None:
        """The chat model for a role in the current run: from its context, the user, the supervisor, or none.

        Its calls in the current node get the timeout of the settings.
        """
        limit_model_calls(self.settings.model_seconds)
        field = f"{role}_model"
        said = [getattr(one, name) for one in (context(), self.preferences) if one for name in (field, "model")]
        chosen = next(filter(None, said), None)
        if chosen is None and role in self.models:
            return self.models[role]
        name = chosen or getattr(self.defaults, field) or self.defaults.model
        return chat_model(name) if name else None

    @property
    def someone_present(self) -> bool:
        """Whether a person can be asked in the current run."""
        return checkpointer() is not None and self.settings.approval != "never" and self.settings.attended

    @property
    def read_skills(self) -> bool:
        """Whether the workers of the current run have a model to follow the texts of skills."""
        return self.settings.skill_tokens > 0 and self.model("worker") is not None

    def prompt(self, name: str) -> str:
        """The system prompt with this name (a field of ``Prompts``) in the current run."""
        found = getattr(self.settings, f"{name}_prompt", None) or str(getattr(self.prompts, name))
        return WEAK_WORKER if found == WORKER and self.settings.weak_model else found


def context() -> Settings | None:
    """The context of the current run; None if the state is changed without a run."""
    runtime: Runtime[Settings] | None = get_runtime(Settings)
    given = runtime.context if runtime is not None else None
    return given if isinstance(given, Settings) else None
