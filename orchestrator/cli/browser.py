"""Opens a page in a browser without showing its address in a command line, which every user can read."""

from __future__ import annotations

import atexit
import html
import secrets
import webbrowser

from callsheet.graphs.storage import private_folder, replace_bytes, state_folder

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>Callsheet</title>
<p><a href="{0}">Open the page</a>
"""


def open_privately(url: str) -> bool:
    """Opens a page whose address holds a key; returns whether a browser was found.

    The browser gets the name of a file that only its user can read and that leads to the page. The file is deleted when
    this program ends.
    """
    file = private_folder(state_folder() / "pages") / f"open-{secrets.token_hex(8)}.html"
    replace_bytes(file, _PAGE.format(html.escape(url)).encode())
    atexit.register(file.unlink, missing_ok=True)
    return webbrowser.open(file.absolute().as_uri())
