"""What holds in a run: what its context says, over what the supervisor was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import get_runtime

from callsheet.agents import Prompts, chat_model
from callsheet.orchestrator.settings import Settings

Role = Literal["planner", "worker", "answer"]


@dataclass(frozen=True, slots=True)
class Choices:
    """Settings, models and prompts of a supervisor; each can be said otherwise for a run.

    Attributes:
        defaults: What holds unless the run's context says otherwise.
        models: Chat models given as objects, by role.
        prompts: The system prompts.
    """

    defaults: Settings
    models: Mapping[str, BaseChatModel]
    prompts: Prompts

    def settings(self) -> Settings:
        """What holds in the current run."""
        given = context()
        return given.over(self.defaults) if given else self.defaults

    def model(self, role: Role) -> BaseChatModel | None:
        """The chat model for a role in the current run: the context's, else the supervisor's own, else none."""
        given, field = context(), f"{role}_model"
        chosen = (getattr(given, field) or given.model) if given else None
        if chosen is None and role in self.models:
            return self.models[role]
        name = chosen or getattr(self.defaults, field) or self.defaults.model
        return chat_model(name) if name else None

    def prompt(self, role: Role) -> str:
        """The system prompt for a role in the current run."""
        return getattr(self.settings(), f"{role}_prompt") or str(getattr(self.prompts, role))


def context() -> Settings | None:
    """The context that the caller gave for the current run."""
    given = get_runtime(Settings).context
    return given if isinstance(given, Settings) else None
