"""Plans over the office of the fake agents, and the models that make and do them."""

from __future__ import annotations

from typing import Any

from deciding_model import DecidingModel

Steps = list[dict[str, Any]]


def steps(*texts: str, **fields: Any) -> Steps:
    return [{"id": str(number), "text": text, **fields} for number, text in enumerate(texts, 1)]


def worker(text: str) -> Any:
    """Does a step by its first words."""
    first, _, rest = text.partition("\n")[0].partition(" ")
    names = {"list": ("list_files", "folder"), "read": ("read_file", "path"), "write": ("write_row", "text"),
             "post": ("send_letter", "text"), "wire": ("send_telegram", "text")}  # fmt: skip
    tool, parameter = names[first.rstrip(":")]
    return tool, {parameter: rest.removeprefix("rows: ").strip()}


SUM = "list notes, read each file and write the sum"


def sums() -> DecidingModel:
    """Reads each file that was listed, adds a row when it has read them, then ends."""

    def revise(told: str) -> dict[str, Any]:
        if "written:" in told:
            return {"done": True, "reason": "the row is there"}
        if "rent 720" in told:
            return {
                "steps": [{"id": "9", "text": "write 1420", "depends_on": ["2.1", "2.2"]}],
                "reason": "a row is due",
            }
        return {}

    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    return DecidingModel(plan=lambda _: {"steps": plan, "open": True}, revise=revise, work=worker)
