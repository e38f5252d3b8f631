"""The committed result of `make verify-diff`: what the real operator did with the random edits."""

import hashlib
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from cluster.edits.cases import load_base_values
from cluster.edits.observation import EditCase, Observation
from cluster.edits.random_edits import generate_edits
from cluster.edits.run import EditResults
from cluster.kit.place import Testbed
from rayhelm.facts.closed import Closed

__all__ = ["COUNT", "FILE", "SEED", "RandomResult", "hash_inputs", "list_random_edits", "read_result", "write_result"]

SEED, COUNT = 17, 120
FILE = Path(__file__).with_name("random-1.6.2.json")


class RandomOutcome(Closed):
    """What happened to one RayService."""

    outcome: str
    largest_clusters: int
    """Largest number of RayClusters at one time."""
    largest_gpus: int
    """Largest number of GPUs in use at one time."""
    messages: tuple[str, ...] = ()


class RandomResult(Closed):
    """The file."""

    command: str
    commit: str
    """Commit of the checkout; with `+` if it had other changes."""
    kuberay: str
    kubernetes: str
    seed: int
    inputs: str
    """SHA-256 of the edits and of the values of the RayService that they change."""
    seconds: int
    """Duration of the run."""
    outcomes: dict[str, RandomOutcome]
    """By id of the edit."""


def list_random_edits() -> tuple[EditCase, ...]:
    return generate_edits(SEED, COUNT)


def hash_inputs(edits: Sequence[EditCase], kuberay: str) -> str:
    inputs = [load_base_values(kuberay), *(edit.model_dump(mode="json") for edit in edits)]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def read_result() -> RandomResult:
    return RandomResult.model_validate_json(FILE.read_text())


def write_result(edits: Sequence[EditCase], results: EditResults, place: Testbed, begun: float) -> None:
    outcomes = {}
    for edit in edits:
        found = results[edit.id]
        if isinstance(found, Observation):  # the test of another one fails
            outcomes[edit.id] = _summarize(found)
    result = RandomResult(
        command="make verify-diff",
        commit=_find_commit(),
        kuberay=place.kuberay,
        kubernetes=place.plane.record.kubernetes,
        seed=SEED,
        inputs=hash_inputs(edits, place.kuberay),
        seconds=round(time.monotonic() - begun),
        outcomes=outcomes,
    )
    FILE.write_text(json.dumps(result.model_dump(mode="json", exclude_defaults=True), indent=1) + "\n")


def _summarize(found: Observation) -> RandomOutcome:
    return RandomOutcome(
        outcome=found.outcome,
        largest_clusters=found.clusters.during,
        largest_gpus=found.gpus.during,
        messages=found.messages,
    )


def _find_commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=FILE.parent).stdout

    return git("rev-parse", "HEAD").strip() + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
