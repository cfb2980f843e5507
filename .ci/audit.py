"""Looks for known vulnerabilities of what constraints.txt pins, and says aloud what could not be looked at.

Where the index gives no data, pip-audit itself says "No known vulnerabilities found" and ends with 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PIP_AUDIT = "pip-audit==2.10.1"
PINS = Path(__file__).parents[1] / "constraints.txt"
COMMAND = ("uvx", PIP_AUDIT, "--requirement", str(PINS), "--no-deps", "--disable-pip", "--progress-spinner=off",
           "--format=json")  # fmt: skip


def told(report: str, trouble: str) -> tuple[str, int]:
    """What is said about a report of pip-audit, and the exit status: 1 where something is vulnerable.

    Args:
        report: Its JSON; empty if it gave none.
        trouble: What it wrote on standard error.
    """
    try:
        found: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        last = (trouble.strip().splitlines() or ["it said nothing"])[-1]
        return f"NOT AUDITED: pip-audit gave no report: {last}", 0
    vulnerable = [f"{one['name']} {one['version']}: {_named(one['vulns'])}" for one in found if one.get("vulns")]
    skipped = [one["name"] for one in found if "skip_reason" in one]
    lines = [f"{len(found) - len(skipped)} of {len(found)} pinned packages were audited"]
    if skipped:
        reason = next(one["skip_reason"] for one in found if "skip_reason" in one)
        lines.append(f"NOT AUDITED: {len(skipped)} packages, such as {', '.join(skipped[:5])}: {reason}")
    lines += [f"VULNERABLE: {line}" for line in vulnerable]
    return "\n".join(lines), int(bool(vulnerable))


def _named(vulnerabilities: list[dict[str, Any]]) -> str:
    return "; ".join(f"{one['id']}, mended in {', '.join(one['fix_versions']) or 'none'}" for one in vulnerabilities)


def main() -> int:
    """Runs pip-audit and tells what it found."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
        said, status = told(done.stdout, done.stderr)
    except (OSError, subprocess.TimeoutExpired) as error:
        said, status = told("", str(error))
    print(said)  # noqa: T201
    return status


if __name__ == "__main__":
    sys.exit(main())
