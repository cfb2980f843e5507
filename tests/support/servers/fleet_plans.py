"""Fifteen tasks over the real fleet: what is laid out, what is asked, what is decided by results, and the end state.

Each is laid out with a word drawn anew, so nothing that a task's ``decide`` needs can be in it.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fleet_decisions import (
    bolt,
    budget,
    commits,
    copied,
    debts,
    inbox,
    marathon,
    newest,
    orders,
    price,
    saved,
    shelves,
    trail,
)
from fleet_model import Decide


@dataclass(frozen=True, slots=True)
class PlanTask:
    """One task.

    Attributes:
        id: Its name.
        request: What is asked; ``{box}`` stands for the folder that the servers work in.
        lay: Lays out files and rows with a word, in that folder.
        decide: The next steps by what is known.
        reached: Whether the end state is there, with that word.
        once: Whether a plan that is never changed gets there too.
    """

    id: str
    request: str
    lay: Callable[[Path, str], None]
    decide: Decide
    reached: Callable[[Path, str], bool]
    once: bool = False


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def query(box: Path, sql: str) -> list[str]:
    """The first column of what the database answers."""
    with closing(sqlite3.connect(box / "shop.db")) as database, database:
        return [row[0] for row in database.execute(sql)]


def noted(box: Path, name: str) -> str:
    """The observations of an entity of the knowledge graph."""
    entries = map(json.loads, (box / "memory.jsonl").read_text(encoding="utf-8").splitlines())
    return "\n".join(text for entry in entries if entry.get("name") == name for text in entry["observations"])


def has_noted(name: str) -> Callable[[Path, str], bool]:
    return lambda box, word: word in noted(box, name)


def git(box: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(box / "repo"), *words], capture_output=True, text=True, check=True)
    return done.stdout


def lay_newest(box: Path, word: str) -> None:
    for day, text in (("04-30", "old"), ("05-02", "older"), (f"06-{int(word, 16) % 28 + 1:02}", word), ("03-01", "x")):
        write(box / f"files/notes/2026-{day}.txt", text)


def lay_inbox(box: Path, word: str) -> None:
    query(box, "CREATE TABLE inbox (name TEXT)")
    for number in range(int(word[0], 16) % 4 + 2):
        write(box / f"files/inbox/{word}{number}.txt", "x")


def inbox_done(box: Path, word: str) -> bool:
    return sorted(query(box, "SELECT name FROM inbox")) == sorted(path.name for path in (box / "files/inbox").iterdir())


def lay_empty(box: Path, word: str) -> None:
    query(box, "CREATE TABLE inbox (name TEXT)")
    (box / "files/inbox").mkdir()


def amounts(word: str) -> list[int]:
    """Four numbers, of which two to four are above 100, and perhaps the same."""
    one, two, three, four = (int(letter, 16) for letter in word[:4])
    return [80 + one, 80 + 2 * two, 101 + three, 101 + four]


def lay_orders(box: Path, word: str) -> None:
    query(box, "CREATE TABLE orders (amount TEXT)")
    for number, amount in enumerate(amounts(word)):
        write(box / f"files/orders/{number}.txt", f"amount {amount}")


def orders_done(box: Path, word: str) -> bool:
    large = {str(amount) for amount in amounts(word) if amount > 100}
    return set(query(box, "SELECT amount FROM orders")) == large


def lay_table(box: Path, word: str) -> None:
    query(box, "CREATE TABLE clients (name TEXT)")
    query(box, f"CREATE TABLE debts_{word} (id INTEGER, who_{word} TEXT, owed INTEGER)")
    query(box, f"INSERT INTO debts_{word} VALUES (1, 'Ann', 3), (2, 'Ben {word}', 9), (3, 'Cid', 5)")


def clean_noted(box: Path, word: str) -> bool:
    return noted(box, "repository") == "clean" and git(box, "log", "--format=%s").split() == ["start"]


def dirty_saved(box: Path, word: str) -> bool:
    return f"+{word}" in git(box, "show", "HEAD") and not noted(box, "repository")


def lay_bolt(box: Path, word: str) -> None:
    query(box, "CREATE TABLE prices (name TEXT, price TEXT)")
    entity = {"type": "entity", "name": "bolt", "entityType": "part", "observations": [f"costs {word}"]}
    with (box / "memory.jsonl").open("a") as file:
        file.write(json.dumps(entity) + "\n")


def lay_trail(box: Path, word: str) -> None:
    names = ["start.txt", *(f"{word}{number}.txt" for number in range(3))]
    for name, other in pairwise(names):
        write(box / "files/trail" / name, f"next: {other}")
    write(box / "files/trail" / names[-1], f"treasure {word}")


def lay_commits(box: Path, word: str) -> None:
    for subject, text in (("Add a title", "title"), ("Change the price", f"price {word}"), ("Add an end", "end")):
        write(box / "repo/README.md", f"{text}\n")
        git(box, "commit", "-qam", subject)


def lay_shelves(box: Path, word: str) -> None:
    query(box, "CREATE TABLE shelf (name TEXT)")
    for folder, number in (("left", 2), ("right", 3)):
        for index in range(number):
            write(box / f"files/shelf/{folder}/{word}-{folder}{index}.txt", "x")


def shelves_done(box: Path, word: str) -> bool:
    return sorted(query(box, "SELECT name FROM shelf")) == sorted(p.name for p in (box / "files/shelf").rglob("*.txt"))


def lay_budget(box: Path, word: str) -> None:
    for folder in "abc":
        write(box / f"files/{folder}/other.txt", "x")
    write(box / f"files/c/budget-{word}.txt", word)


SAVE = (
    "If the git repository {box}/repo has changed files, commit them with the message Save, otherwise note it as clean"
)
ROWS = "Write a row into the table inbox of the database for each file in {box}/files/inbox"
TASKS = (
    PlanTask(
        "newest", "Note the text of the newest file in {box}/files/notes", lay_newest, newest, has_noted("newest")
    ),
    PlanTask("rows", ROWS, lay_inbox, inbox, inbox_done, once=True),
    PlanTask("nothing to do", ROWS, lay_empty, inbox, inbox_done, once=True),
    PlanTask(
        "rows of some",
        "Write a row into the table orders of the database for each amount above 100 in {box}/files/orders",
        lay_orders,
        orders,
        orders_done,
    ),
    PlanTask("table", "Note who owes the most by the database in {box}", lay_table, debts, has_noted("debtor")),
    PlanTask("changed", SAVE, lambda box, word: write(box / "repo/README.md", word), saved, dirty_saved),
    PlanTask("unchanged", SAVE, lambda box, word: None, saved, clean_noted),
    PlanTask(
        "refused",
        "Copy the text of {box}/files/report.txt into {box}/out/report.txt",
        lambda box, word: write(box / "files/report.txt", word),
        copied,
        lambda box, word: (path := box / "out/report.txt").is_file() and path.read_text().strip() == word,
    ),
    PlanTask(
        "unreachable",
        "Note the price at http://127.0.0.1:9/price.txt, or if that cannot be had, in {box}/files/price.txt",
        lambda box, word: write(box / "files/price.txt", word),
        price,
        has_noted("price"),
    ),
    PlanTask(
        "second source",
        "Write the price of a bolt, from the database or else from the knowledge graph, into {box}/files/bolt.txt",
        lay_bolt,
        bolt,
        lambda box, word: (path := box / "files/bolt.txt").is_file() and path.read_text().strip() == word,
    ),
    PlanTask(
        "marathon",
        "Convert 26.2 miles to kilometres and note them; the servers work in {box}",
        lambda box, word: None,
        marathon,
        lambda box, word: "42.16" in noted(box, "marathon"),
        once=True,
    ),
    PlanTask(
        "trail",
        "Follow the files from {box}/files/trail/start.txt to the last and note what it says",
        lay_trail,
        trail,
        has_noted("treasure"),
    ),
    PlanTask(
        "commit",
        "Note the price that was set in the commit Change the price of {box}/repo",
        lay_commits,
        commits,
        has_noted("price"),
    ),
    PlanTask(
        "shelves",
        "Write a row into the table shelf of the database for each file in each folder of {box}/files/shelf",
        lay_shelves,
        shelves,
        shelves_done,
        once=True,
    ),
    PlanTask(
        "budget",
        "Note the budget file in {box}/files/a, or if none is there in b, or else in c",
        lay_budget,
        budget,
        has_noted("budget"),
    ),
)
