"""A stage for each fuzzer."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from puppet import Puppet
from stage import Stage


@pytest.fixture
def puppet() -> Puppet:
    """A stdio server; a fuzzer of another transport has its own."""
    return Puppet()


@pytest.fixture
def stage(tmp_path: Path, puppet: Puppet) -> Iterator[Stage]:
    """A pool with a server that is fuzzed and a healthy one, which must not be slowed by it."""
    gc.collect()
    gc.freeze()  # what other tests have left is not collected meanwhile: after 3,000 tests that takes seconds
    stage = Stage(tmp_path, puppet)
    yield stage
    stage.finish()
