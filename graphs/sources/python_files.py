"""Names the object in a Python file that somebody gave as a catalog."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path


def reference_to(file: Path) -> str:
    """Returns ``module:object`` for a Python file, with the first object of it that is a list or a dictionary."""
    names = ["tools"]
    with suppress(SyntaxError, ValueError, OSError):
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Dict | ast.ListComp):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)] or names
                break
    module = ".".join(part for part in file.with_suffix("").parts if part not in (".", "..", "/"))
    return f"{file.stem if file.is_absolute() else module}:{names[0]}"
