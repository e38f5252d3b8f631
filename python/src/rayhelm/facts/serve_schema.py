"""Keys and types of a serveConfigV2 that ci/serve_schema.py read from Ray Serve and Ray Serve LLM."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from rayhelm.facts.versions import versions

__all__ = ["load_serve_schema"]

_FOLDER = Path(__file__).parent.parent / "data" / "ray_serve"


@cache
def load_serve_schema() -> dict[str, Any]:
    """Return the schema of the pinned Ray: `config`, the arguments of `builders` by import path, and `$defs`."""
    schema: dict[str, Any] = json.loads((_FOLDER / f"ray-{versions().ray}.json").read_text(encoding="utf-8"))
    return schema
