"""The layout that docs/concepts/architecture.md promises: small folders and modules, and no circles."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

import grimp
import networkx as nx
from radon.visitors import ComplexityVisitor

ROOT = Path(__file__).parents[2]
MOST, LINES, COMPLEXITY = 15, 500, 15
FOLDERS = ("graphs", "retrievers", "agents", "orchestrator")
DOORS = ("__init__.py", "__init__.pyi")
ANY = {"graphs": 239, "retrievers": 52, "agents": 484, "orchestrator": 444}
"""How often each folder says ``Any``; a number may fall and not rise: ``Any`` belongs where foreign data come in."""


def tracked() -> list[PurePosixPath]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [PurePosixPath(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_a_folder_has_at_most_fifteen_entries() -> None:
    entries: dict[str, set[str]] = defaultdict(set)
    for file in tracked():
        for folder in list(file.parents)[:-1]:
            entries[str(folder)].add(file.relative_to(folder).parts[0])
    assert {folder: len(names) for folder, names in entries.items() if len(names.difference(DOORS)) > MOST} == {}


def test_a_module_has_at_most_five_hundred_lines() -> None:
    modules = [file for file in tracked() if file.suffix == ".py"]
    assert {str(file): n for file in modules if (n := len((ROOT / file).read_text("utf-8").splitlines())) > LINES} == {}


def test_no_block_is_more_complex_than_fifteen() -> None:
    """By radon's measure, which counts conditional expressions, conditions in comprehensions and boolean operators."""
    complex_blocks: dict[str, int] = {}
    for file in tracked():
        if file.suffix != ".py" or file.parts[0] not in FOLDERS:
            continue
        for block in ComplexityVisitor.from_code((ROOT / file).read_text("utf-8")).blocks:
            for part in getattr(block, "methods", [block]):
                if part.complexity > COMPLEXITY:
                    complex_blocks[f"{file}: {part.fullname}"] = part.complexity
    assert complex_blocks == {}


def test_any_does_not_spread() -> None:
    counts: Counter[str] = Counter()
    for file in tracked():
        if file.suffix == ".py" and file.parts[0] in FOLDERS:
            names = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
            counts[file.parts[0]] += sum(isinstance(name, ast.Name) and name.id == "Any" for name in names)
    assert {folder: count for folder, count in counts.items() if count > ANY[folder]} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = grimp.build_graph("callsheet")
    graph = nx.DiGraph(
        (name, used) for name in imports.modules for used in imports.find_modules_directly_imported_by(name)
    )
    assert graph.number_of_edges() > 500
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []
