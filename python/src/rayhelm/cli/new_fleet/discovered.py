"""The output of `rayhelm discover` as the beginning of a fleet file."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rayhelm.cli.new_fleet.answers import Answers
from rayhelm.cli.new_fleet.text import complete_text
from rayhelm.errors import UsageError, attempt
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import Document, parse_document, read_text

__all__ = ["Discovered", "read_discovered"]


@dataclass(frozen=True)
class Discovered:
    """Pools and clusters of a file, and its text with comments."""

    text: str
    document: Document
    cluster: str
    """Cluster of the first pool, which gets the model."""
    gpu: str
    """GPU with the most memory, for the proposed model."""

    @property
    def fleet(self) -> str | None:
        """Name in the file, unless it is the one that `discover` writes by default."""
        name = self.document.data.get("fleet")
        return name if isinstance(name, str) and name != "discovered" else None

    @property
    def has_address(self) -> bool:
        clusters = self.document.data.get("clusters")
        declared = clusters.get(self.cluster) if isinstance(clusters, dict) else None
        return isinstance(declared, dict) and "apiServer" in declared

    def complete(self, answers: Answers) -> str:
        """Return the text of the whole fleet file."""
        line = self.document.lines.get(("clusters", self.cluster), 0)
        text = complete_text(self.text, self.document.data, self.cluster, line, answers)
        lines = text.splitlines()
        named = self.document.lines.get(("fleet",), 0)
        if named:
            lines[named - 1] = f"fleet: {answers.fleet}"
        else:
            lines.insert(0, f"fleet: {answers.fleet}")
        lines = [line.replace(" Add `models`: `rayhelm explain models`.", "") for line in lines]
        return "\n".join(lines) + "\n"


def read_discovered(path: Path) -> Discovered:
    """Read the file, or standard input for `-`. Raises UsageError if it has no pools, or is a fleet file already."""
    if path.is_dir():
        raise UsageError(f"--from {path} is a folder. fix: --from {path}/pools.yaml, the file that `discover` wrote")
    is_input = str(path) == "-"
    text = sys.stdin.read() if is_input else read_text(path)
    name = "standard input" if is_input else str(path)
    if not text.strip():
        raise UsageError(f"{name} is empty. fix: rayhelm discover -o pools.yaml, then: --from pools.yaml")
    document = parse_document(text, name)
    pools = document.data.get("pools")
    if not isinstance(pools, dict) or not all(isinstance(pool, dict) for pool in pools.values()):
        raise UsageError(f"{name} has no `pools`. fix: rayhelm discover -o pools.yaml, then: --from pools.yaml")
    if present := [key for key in ("models", "services", "tenants") if key in document.data]:
        raise UsageError(f"{name} has `{present[0]}` already: it is a fleet file. fix: rayhelm plan {path}")
    first = next(iter(pools.values()))
    return Discovered(text, document, str(first.get("cluster", "main")), _find_largest_gpu(pools))


def _find_largest_gpu(pools: dict[str, dict[str, object]]) -> str:
    """Return the GPU with the most memory; the plan reports ids that are not known."""
    facts = load_catalog()
    gpus = [str(pool["gpu"]) for pool in pools.values() if "gpu" in pool]
    sizes = {gpu: known.usable_gib or 0 for gpu in gpus if (known := attempt(partial(facts.gpu, gpu)))}
    return max(sizes, key=lambda gpu: sizes[gpu]) if sizes else "L4-24GB"
