"""Check the file that the demo question leaves: ``python -m examples.demo.check PATH`` (exit status 0 or 1)."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo


def problems(text: str, now: datetime | None = None) -> list[str]:
    """What is missing in ``text``: 26.2 miles in kilometres, 9:30 in Berlin in Tokyo's time, the bag drop's end."""
    berlin = (now or datetime.now(tz=ZoneInfo("Europe/Berlin"))).replace(hour=9, minute=30)
    tokyo = berlin.astimezone(ZoneInfo("Asia/Tokyo"))
    hour = f"({tokyo:%H}:30|{tokyo.hour - 12}:30 ?[Pp])"
    missing = []
    if not re.search(r"(?<![\d.])42[.,](1[67]\d*|2)(?!\d)", text):
        missing.append("26.2 miles are 42.16 km")
    if not re.search(rf"(?<!\d){hour}", text):
        missing.append(f"9:30 in Berlin is {tokyo:%H:%M} in Tokyo")
    if not re.search(r"(?<!\d)0?8:15", text):
        missing.append("the bag drop closes at 08:15 (race-day.md of the guide)")
    return missing


def main(path: Path) -> int:
    """Print the verdict on the file at ``path``."""
    if not path.is_file():
        print(f"{path}: was not written", file=sys.stderr)
        return 1
    missing = problems(path.read_text(encoding="utf-8"))
    for fact in missing:
        print(f"{path}: does not say that {fact}", file=sys.stderr)
    if not missing:
        print(f"{path}: all three results are there and right", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
