"""Where tools are described, where they are kept, and the environment that they are looked for in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "Checkout"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Checkout:
    """A checkout, as far as tools go."""

    root: Path
    env: Mapping[str, str]

    @property
    def data(self) -> Path:
        """tools.yaml, and a folder for each Go module."""
        return self.root / "ci" / "tools"

    @property
    def store(self) -> Path:
        """What was fetched and built; git ignores it."""
        return self.root / ".tools"


HERE = Checkout(ROOT, os.environ)
