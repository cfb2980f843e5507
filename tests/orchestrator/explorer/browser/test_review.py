"""The review in a real browser: by keyboard, heard, at 390 pixels, with hostile text and with somebody else at work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from callsheet.graphs.dependencies import read_dependencies
from chromium import Browser
from explored import KEY
from reviewed import CHANGED, DELETE, NEW, Reviewed

pytestmark = pytest.mark.server
Show = Callable[..., Browser]
FOCUS = "document.activeElement"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reviewed:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    return Reviewed(tmp_path)


def go(page: Browser, part: str) -> None:
    page.run(f"location.hash = '#/review?part={part}'")
    page.wait(f"document.querySelector('.review:not([aria-busy]) .of-{part} > li')")


def tab_to(page: Browser, name: str) -> None:
    """Tabs to the control that a screen reader calls so."""
    for _ in range(30):
        page.press("Tab")
        if page.run(f"({FOCUS}.ariaLabel || {FOCUS}.textContent)") == name:
            assert page.run(f"getComputedStyle({FOCUS}).outlineStyle") == "solid"
            return
    pytest.fail(f"Tab does not reach {name}")


def test_everything_is_decided_in_the_page_with_the_keyboard_alone(show: Show, made: Reviewed) -> None:
    page = show(made.page(), f"#key={KEY}")
    page.wait("document.querySelector('[data-view=review]').textContent === 'Review (2)'")
    go(page, "changes")
    said = page.run("document.querySelector('.of-changes').innerText")
    assert "\\u202e</script></title>" in said
    assert page.run("document.title") == "Review - Callsheet"
    assert page.run("document.querySelector('ins mark').textContent").startswith(" in every book.")
    heard = page.heard()
    for known in (
        ("link", "Review, 2 changes in quarantine"),
        ("navigation", "Parts of the review"),
        ("region", "Definition of crm/find_contacts"),
        ("columnheader", "Accepted"),
        ("button", "Accept crm/merge_contacts"),
    ):
        assert known in heard, known
    assert {"deletion", "insertion"} <= {role for role, _ in heard}
    tab_to(page, "Accept crm/find_contacts")
    page.press("Enter")
    page.wait(f"{FOCUS}.textContent === 'crm/find_contacts is accepted, and used from now on.'")
    page.wait("document.getElementById('counts').textContent.includes('8 tools, 3 dependencies, 1 inferred')")
    assert "crm/find_contacts" in made.retriever.catalog.tools
    # The server has changed the other tool since, and somebody has accepted that on the command line.
    made.tools = [CHANGED, DELETE, {**NEW, "title": "Merge"}]
    made.book.accept(made.read().changes)
    tab_to(page, "Accept crm/merge_contacts")
    page.press("Enter")
    page.wait("document.getElementById('alert').textContent.includes('another definition was accepted meanwhile')")
    page.wait("document.querySelector('.review').innerText.includes('Nothing waits')")
    assert made.retriever.catalog.tools["crm/merge_contacts"].title == "Merge"
    go(page, "dependencies")
    tab_to(page, "Accept: crm/delete_contact needs crm/find_contacts for contact_id")
    page.press("Enter")
    page.wait(f"{FOCUS}.textContent === 'Undo'")
    page.wait("document.getElementById('counts').textContent.includes('4 dependencies, 0 inferred')")
    assert [edge.accept for edge in read_dependencies(made.decisions)] == [True]
    page.press("Enter")
    page.wait(f"{FOCUS}.ariaLabel?.startsWith('Accept: crm/delete_contact')")
    assert all("409 (Conflict)" in one for one in page.complaints)


def test_without_the_key_the_review_page_shows_nothing(show: Show, made: Reviewed) -> None:
    page = show(made.page(), "#/review", 390)
    go(page, "changes")
    assert page.run("document.documentElement.scrollWidth") == 390
    assert page.complaints == []
    page.run("localStorage.clear(); window.before = true; location.reload()")
    page.wait("!window.before && document.getElementById('alert')?.textContent.includes('open the whole address')")
    assert "crm" not in page.run("document.body.innerText")
