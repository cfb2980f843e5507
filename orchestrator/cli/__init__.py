"""The command line: ``callsheet``."""

from callsheet.orchestrator.cli.main import main

__all__ = ["main"]
