"""The edits: `cases/*.yaml`, a file per part of a RayService."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from cluster.edits.observation import EditCase

__all__ = ["load_base_values", "load_cases"]

HERE = Path(__file__).parent
_FILE = TypeAdapter(tuple[EditCase, ...])


def load_cases() -> tuple[EditCase, ...]:
    """Return all edits in the order of the files."""
    files = sorted((HERE / "cases").glob("*.yaml"))
    return tuple(edit for file in files for edit in _FILE.validate_python(yaml.safe_load(file.read_bytes())))


def load_base_values(kuberay: str) -> dict[str, Any]:
    """Return the values of the RayService that is edited, for this version of the operator."""
    values: dict[str, Any] = yaml.safe_load((HERE / "base.yaml").read_bytes())
    return {**values, "kuberay": {"version": kuberay}}
