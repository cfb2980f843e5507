"""``callsheet`` and ``python -m callsheet``."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line; interrupted before it is loaded, it ends as it does later, without a traceback."""
    exit_on_signals()
    try:
        from callsheet.orchestrator.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(130) from None
    run()


def exit_on_signals() -> None:
    """SIGTERM and SIGHUP end the program as an exit does, so that its servers and their children end with it."""
    for number in filter(None, (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


if __name__ == "__main__":
    main()
