"""Measure the speed of rayhelm's commands on this computer; exit with 1 if one is over its limit."""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.planner.memory.fit import fit
from rayhelm.planner.shape import ReplicaShape

ROOT = Path(__file__).resolve().parent.parent
RAYHELM = Path(sys.executable).with_name("rayhelm")
RUNS = 7
FITS = 10_000
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""With bytecode, as an installed wheel has it."""


def main() -> int:
    fleets = sorted(ROOT.glob("values/*/fleet.yaml"))
    held = [
        promise("import rayhelm.cli", 0.3, median_of(sys.executable, "-c", "import rayhelm.cli")),
        *(
            promise(f"rayhelm plan values/{fleet.parent.name}", 0.7, median_of(RAYHELM, "plan", fleet))
            for fleet in fleets
        ),
        promise(f"fit, {FITS} random questions", 5.0, seconds(lambda: ask_at_random(FITS))),
    ]
    return 0 if all(held) else 1


def promise(what: str, limit: float, taken: float) -> bool:
    print(f"{what:36} {taken:6.2f} s, at most {limit} s{'' if taken <= limit else '   TOO SLOW'}")
    return taken <= limit


def median_of(*command: object) -> float:
    """Return seconds of a whole process, start to end; the first run fills the caches of the file system."""
    return statistics.median([seconds(lambda: run(*command)) for _ in range(RUNS + 1)][1:])


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, check=True, env=_ENVIRONMENT)


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def ask_at_random(count: int) -> None:
    """Every question is one that the command could be asked; one that is refused in words is an answer too."""
    dice = random.Random(1)
    known: tuple[Sequence[str], ...] = (
        [model.id for model in load_catalog().models()],
        [gpu.id for gpu in load_catalog().gpus()],
    )
    for _ in range(count):
        model, gpu = (dice.choice(names) for names in known)
        try:
            fit(load_catalog().model(model), [load_catalog().gpu(gpu)], ReplicaShape(dice.choice((1, 2, 4, 8))))
        except FleetError:
            continue


if __name__ == "__main__":
    sys.exit(main())
