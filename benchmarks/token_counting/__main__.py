"""python -m token_counting [--rounds N] [--processor-only] [--write FILE]: what counting tokens by tenant costs."""

import argparse
import asyncio
import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rayhelm.run.local.prometheus import find_prometheus
from testbed.tools import program
from token_counting import processor, service

SECONDS = 15.0
"""Load of one round and endpoint."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-tokens", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds, each with and without the count (default 9)")
    parser.add_argument("--processor-only", action="store_true", help="start no endpoint")
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    options = parser.parse_args()
    found: dict[str, Any] = {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "processor": _measure_processor(options.rounds),
    }
    if not options.processor_only:
        os.environ.setdefault("PROMETHEUS", str(program("prometheus")))
        find_prometheus()
        found["service"] = asyncio.run(_measure_service(options.rounds))
    print(json.dumps(found, indent=1))
    if options.write:
        options.write.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _measure_processor(rounds: int) -> dict[str, Any]:
    """The first round warms up."""
    results = [asyncio.run(processor.measure()) for _ in range(rounds + 1)][1:]
    return {
        "requests_per_step": processor.REQUESTS,
        "steps": processor.STEPS,
        "cpu_microseconds_per_token": _compare([(without, counting) for without, counting, _ in results]),
        "cpu_microseconds_of_a_read": round(median(read for *_, read in results), 1),
    }


async def _measure_service(rounds: int) -> dict[str, Any]:
    with service.endpoints() as (without, counting):
        sides = {False: without, True: counting}
        pairs = []
        for number in range(rounds + 1):
            first = bool(number % 2)
            results = {side: await service.measure(*sides[side], SECONDS) for side in (first, not first)}
            pairs.append((results[False], results[True]))
    kept = pairs[1:]
    return {
        "clients": service.CLIENTS,
        "seconds": SECONDS,
        "tokens_per_second": _compare([(one.tokens_per_second, other.tokens_per_second) for one, other in kept]),
        "replica_cpu_microseconds_per_token": _compare(
            [(one.cpu_microseconds_per_token, other.cpu_microseconds_per_token) for one, other in kept]
        ),
    }


def _compare(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the medians without and with the count, and the ratio of each round: with over without."""
    ratios = [other / one for one, other in pairs]
    return {
        "without": round(median(one for one, _ in pairs), 3),
        "with": round(median(other for _, other in pairs), 3),
        "ratio": round(median(ratios), 4),
        "ratios": [round(ratio, 4) for ratio in ratios],
    }


if __name__ == "__main__":
    raise SystemExit(main())
