"""``callsheet`` and ``python -m callsheet``."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; interrupted before it is loaded, it ends as it does later, without a traceback."""
    try:
        from callsheet.orchestrator.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
