"""``python -m callsheet``."""

from callsheet.orchestrator.cli.main import main

main()
