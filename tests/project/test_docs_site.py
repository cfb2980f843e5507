"""The documentation as a site: every page is in its navigation, every link has a target, every public name a place."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from callsheet import SelectSettings
from callsheet.graphs.sources.loading import CATALOG_KINDS
from callsheet.orchestrator.cli.main import callsheet
from callsheet.orchestrator.run.settings import Planning
from callsheet.retrievers import METHODS
from callsheet.retrievers.documents.document_formats import LOADERS, suffixes
from callsheet.retrievers.selection.select_settings import Expansion, Ranking, Scoring

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[\w-]*)?\)")
README_LINES = 125
"""Two screens."""


def _pages(nav: Any) -> Iterator[str]:
    for entry in nav.values() if isinstance(nav, dict) else nav:
        if isinstance(entry, str):
            yield entry
        else:
            yield from _pages(entry)


def test_the_navigation_has_every_page_once() -> None:
    pages = list(_pages(SITE["nav"]))
    assert sorted(pages) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_no_page_loads_a_font_or_a_script_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & set(SITE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_has_a_target(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if ":" not in link]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("door", ["graphs", "retrievers", "agents", "orchestrator", ""])
def test_the_reference_has_every_public_name_once(door: str) -> None:
    names = [f"callsheet.{name}" for name in importlib.import_module("callsheet").__all__]
    if door:
        inner = importlib.import_module(f"callsheet.{door}").__all__
        names = [f"callsheet.{door}.{name}" for name in inner if f"callsheet.{name}" not in names]
    text = (DOCS / "reference" / "api" / f"{door or 'callsheet'}.md").read_text(encoding="utf-8")
    documented = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    level = 1 + names[0].count(".") if names else 0
    assert sorted(name for name in documented if name.count(".") + 1 == level) == sorted(names)


def test_the_reference_has_every_command() -> None:
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)) == set(callsheet.commands)


def test_the_retrieval_page_has_every_setting_of_a_selection_with_its_default() -> None:
    page = (DOCS / "concepts" / "retrieval.md").read_text(encoding="utf-8")
    documented: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`[^|]+`(?:, `[^|]+`)*) \|", page, re.MULTILINE):
        documented |= dict(zip(re.findall(r"`(\w+)`", names), re.findall(r"`([^`]+)`", defaults), strict=True))
    plain = {
        name: json.dumps(value) if isinstance(value, str) else str(value)
        for name, value in asdict(SelectSettings()).items()
    }
    assert documented == plain
    for name, words in (("search", Scoring), ("ranking", Ranking), ("expansion", Expansion)):
        row = re.search(rf"^\| `{name}` \| .*", page, re.MULTILINE)
        assert row
        assert sorted(re.findall(r'`"(\w+)"`', row[0])) == sorted(get_args(words))


def test_the_help_names_every_method_and_every_mode() -> None:
    for command, words in (("retrieve", METHODS), ("eval", METHODS), ("ask", get_args(Planning))):
        text = CliRunner().invoke(callsheet, [command, "--help"], terminal_width=500, max_content_width=500).output
        assert [word for word in words if word not in text] == []


def test_help_and_documentation_name_every_kind_of_catalog() -> None:
    names = [name for kind in CATALOG_KINDS for name in kind.names]
    help_text = CliRunner().invoke(callsheet, ["retrieve", "--help"], terminal_width=900, max_content_width=900).output
    assert [name for name in names if name not in help_text] == []
    table = (DOCS / "reference" / "catalogs.md").read_text(encoding="utf-8").partition("## ")[0]
    sources = " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)).replace("`", "")
    assert [name for name in names if name not in sources] == []


def test_help_and_documentation_name_every_suffix_of_documents() -> None:
    help_text = CliRunner().invoke(callsheet, ["documents", "--help"], max_content_width=500).output
    assert set(re.findall(r"(?<!\w)\.[a-z]+\b", help_text)) == set(LOADERS)
    page = (DOCS / "how-to" / "documents.md").read_text(encoding="utf-8")
    row = re.search(r"^\| read \| `(.+?)`; .* also `(.+?)`", page, re.MULTILINE)
    assert row
    assert row.groups() == (suffixes(core=True), suffixes(core=False))


def test_the_readme_fits_two_screens() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.sub(r"```mermaid\n.*?```\n", "", text, flags=re.DOTALL).splitlines()) <= README_LINES


def test_the_architecture_page_names_one_file_for_each_of_twenty_tasks() -> None:
    page = (DOCS / "concepts" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Which file to change")[2].partition("\n## ")[0]
    files = dict(re.findall(r"^\| ([A-Z][^|]+) \| `([\w/.]+)` \|$", section, re.MULTILINE))
    assert len(files) >= 20
    assert [file for file in files.values() if not (ROOT / file).is_file()] == []
    assert [file for file in re.findall(r"`(\w+/[\w/]+\.\w+)`", page) if not (ROOT / file).is_file()] == []
