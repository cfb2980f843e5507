"""The layout that docs/architecture.md promises: small folders, and module names that are found by one search."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path, PurePosixPath

import grimp
import networkx as nx

ROOT = Path(__file__).parents[2]
MOST = 10
DOORS = ("__init__.py", "__init__.pyi")
PACKAGES = ("graphs", "retrievers", "agents", "orchestrator")
SAME_PART = {"capabilities", "index", "documents", "export", "catalog", "formats", "gateway"}
"""A room and the command about it, or rooms that hold the same for two kinds of things."""


def tracked() -> list[PurePosixPath]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [PurePosixPath(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_a_folder_has_at_most_ten_entries() -> None:
    entries: dict[str, set[str]] = defaultdict(set)
    for file in tracked():
        for folder in list(file.parents)[:-1]:
            entries[str(folder)].add(file.relative_to(folder).parts[0])
    assert {folder: len(names) for folder, names in entries.items() if len(names.difference(DOORS)) > MOST} == {}


def test_no_two_modules_share_a_name() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for file in tracked():
        if file.suffix == ".py" and file.parts[0] in PACKAGES and len(file.parts) > 2:
            name = file.parent if file.name == "__init__.py" else file
            places[name.stem].add(str(name))
    assert {name for name, found in places.items() if len(found) > 1} <= SAME_PART


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = grimp.build_graph("callsheet")
    graph = nx.DiGraph(
        (name, used) for name in imports.modules for used in imports.find_modules_directly_imported_by(name)
    )
    assert graph.number_of_edges() > 1000
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []
