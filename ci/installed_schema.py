"""A data file about an installed package."""

import json
from pathlib import Path
from typing import Any

__all__ = ["write_or_compare"]


def write_or_compare(path: Path, found: dict[str, Any], what: str, *, check: bool) -> int:
    """Write the file, or with `check` compare it. Returns the exit code. `what`: the program and what it writes."""
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return 0
    if path.is_file() and path.read_text() == text:
        return 0
    print(f"{path}: not {what}")
    return 1
