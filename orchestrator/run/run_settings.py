"""Settings of a run: from its context, else from the user's preferences, else from the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import Runtime, get_runtime

from callsheet.agents import ModelReasoner, NoModel, Prompts, Reasoner, chat_model, checkpointer
from callsheet.agents.models.chat_models import limit_model_calls
from callsheet.agents.models.prompts import WEAK_WORKER, WORKER
from callsheet.agents.programs.sandbox import check_installed
from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.current_user import anonymous_client
from callsheet.orchestrator.run.settings import Settings

Role = Literal["planner", "worker", "answer"]
_STRICTEST = ("always", "risky", "never")
_ANONYMOUS = (
    "{} was requested by a client that is not authenticated, so it stays {}: set CALLSHEET_APPROVAL on "
    "the server, or authenticate its clients"
)
_STORED = "{} is a preference in the store, which others may have written, so it stays {}: set it in the run's context"


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
        if self._refused(found):
            return found.model_copy(update={"approval": self.defaults.approval, "allow": self.defaults.allow})
        return found

    def check_code_mode(self) -> None:
        """Checks that programs can be run, if the run wants any.

        Raises:
            SettingsError: There is no model to write them, or the extra ``code`` is not installed.
        """
        if not self.settings.code_mode:
            return
        if self.model("worker") is None:
            raise SettingsError("code mode needs a model for the workers: it writes the programs")
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
        """Why less strict approval, or an allowed tool, is rejected; empty if it is not, or if there is none."""
        before, given = self.defaults, context()
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

    def reasoner(self, role: Role) -> Reasoner:
        """What does the work of a role in the current run: its chat model, or what works without one."""
        model, settings = self.model(role), self.settings
        if model is not None:
            return ModelReasoner(model)
        present = checkpointer() is not None and settings.attended
        return NoModel(present, frozenset(settings.allow), works=self.model("worker") is None)

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
