"""Measure the time of `fit` in process: 10,000 random (model, GPU, TP), fixes from the catalog included. Budget: 5 s.

PYTHONPATH=python/src python benchmarks/fit.py [count]
"""

import random
import sys
import time

from rayhelm.facts import load_catalog
from rayhelm.planner.memory.fit import fit
from rayhelm.planner.shape import ReplicaShape


def main(count: int) -> None:
    facts = load_catalog()
    models, gpus = facts.models(), facts.gpus()
    choose = random.Random(0)
    asked = [(choose.choice(models), choose.choice(gpus), choose.choice((1, 2, 4, 8))) for _ in range(count)]
    start = time.perf_counter()
    answers = [fit(model, [gpu], ReplicaShape(tp), facts=facts) for model, gpu, tp in asked]
    seconds = time.perf_counter() - start
    fitting = sum(answer.fits for answer in answers)
    print(f"{count:,} fits over {len(models)} models and {len(gpus)} GPUs: {seconds:.2f} s ({fitting:,} fit)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
