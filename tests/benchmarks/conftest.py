"""The benchmarks are a program beside the package, run from the checkout: tests import them from there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
