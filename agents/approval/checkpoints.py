"""The checkpointer of the current run, and an adapter for event loops that it does not support."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.config import get_config

# LangGraph passes the saver to code inside a node under this key; there is no public accessor.
_KEY = "__pregel_checkpointer"


def checkpointer() -> BaseCheckpointSaver[Any] | None:
    """The checkpointer of the current run; None if the app has none, or outside of a run."""
    try:
        found = get_config().get("configurable", {}).get(_KEY)
    except RuntimeError:
        return None
    return found if isinstance(found, BaseCheckpointSaver) else None


def in_threads(config: RunnableConfig) -> RunnableConfig:
    """The config for asynchronous code inside a blocking run: the checkpointer is used from threads.

    ``SqliteSaver`` and ``PostgresSaver`` have no asynchronous methods, and ``AsyncSqliteSaver`` belongs to one loop.
    """
    configurable = config.get("configurable") or {}
    saver = configurable.get(_KEY)
    if not isinstance(saver, BaseCheckpointSaver) or isinstance(saver, InThreads):
        return config
    return {**config, "configurable": {**configurable, _KEY: InThreads(saver)}}


class InThreads(BaseCheckpointSaver[Any]):
    """A checkpointer whose asynchronous methods run the blocking ones of ``saver`` in threads."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    @property
    def config_specs(self) -> list[Any]:
        """The saver's own."""
        return self._saver.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The saver's own."""
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """The same over the saver with these types allowed."""
        return InThreads(self._saver.with_allowlist(extra_allowlist))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The saver's own."""
        return self._saver.get_tuple(config)

    def list(self, config: RunnableConfig | None, **more: Any) -> Iterator[CheckpointTuple]:
        """The saver's own."""
        return self._saver.list(config, **more)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The saver's own."""
        return self._saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The saver's own."""
        self._saver.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """The saver's own."""
        self._saver.delete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """``get_tuple`` in a thread."""
        return await asyncio.to_thread(self._saver.get_tuple, config)

    async def alist(self, config: RunnableConfig | None, **more: Any) -> AsyncIterator[CheckpointTuple]:
        """``list`` in a thread."""
        for found in await asyncio.to_thread(lambda: [*self._saver.list(config, **more)]):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """``put`` in a thread."""
        return await asyncio.to_thread(self._saver.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """``put_writes`` in a thread."""
        await asyncio.to_thread(self._saver.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """``delete_thread`` in a thread."""
        await asyncio.to_thread(self._saver.delete_thread, thread_id)
