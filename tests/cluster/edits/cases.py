"""The edits: `cases/*.yaml`, a file for each part of a RayService."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from rayhelm.forecast.observed import Edit

__all__ = ["base_values", "edits"]

HERE = Path(__file__).parent
_FILE = TypeAdapter(tuple[Edit, ...])


def edits() -> tuple[Edit, ...]:
    """All of them, in the order of the files."""
    files = sorted((HERE / "cases").glob("*.yaml"))
    return tuple(edit for file in files for edit in _FILE.validate_python(yaml.safe_load(file.read_bytes())))


def base_values(kuberay: str) -> dict[str, Any]:
    """Of the RayService that is edited, for an operator of this version."""
    values: dict[str, Any] = yaml.safe_load((HERE / "base.yaml").read_bytes())
    return {**values, "kuberay": {"version": kuberay}}
