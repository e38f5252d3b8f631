"""Folders of the tools in a checkout, and the environment for their search."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "Checkout"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Checkout:
    """A checkout and its tools."""

    root: Path
    env: Mapping[str, str]

    @property
    def data(self) -> Path:
        """Folder with tools.yaml, and with a folder for each Go module."""
        return self.root / "ci" / "tools"

    @property
    def store(self) -> Path:
        """Folder of fetched and built tools; git ignores it."""
        return self.root / ".tools"


HERE = Checkout(ROOT, os.environ)
