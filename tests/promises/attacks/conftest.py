"""A notebook that attacks write into."""

from __future__ import annotations

import pytest

from notebook import Notebook


@pytest.fixture
def notebook() -> Notebook:
    """An empty one."""
    return Notebook()
