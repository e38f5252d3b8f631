"""python -m data_path [--rounds N] [--seconds S] [--write FILE]: `serve.dataPath` and vLLM alone side by side."""

import argparse
import datetime
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

from data_path.inputs import compute_digest
from data_path.load import TOKENS, run_load
from data_path.page import PAGE, replace_table
from data_path.paths import ServedPath, serve_paths
from rayhelm.facts.versions import versions

STREAMS = (1, 16, 64, 192)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-data-path", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each path and number of streams (default 3)")
    parser.add_argument("--seconds", type=float, default=10, help="load of one round (default 10)")
    parser.add_argument("--write", type=Path, help="file for the result as JSON; the page gets its table")
    options = parser.parse_args()
    with serve_paths() as paths:
        for path in paths:
            run_load(path.url, 16, options.seconds / 2)
        rows = [_compare(paths, streams, options.rounds, options.seconds) for streams in STREAMS]
    found = {
        "inputs": compute_digest(),
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "ray": versions().ray,
        "vllm": versions().vllm,
        "tokens_per_stream": TOKENS,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "rows": rows,
    }
    print(json.dumps(found, indent=1))
    if options.write:
        options.write.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(replace_table(PAGE.read_text(), found))
    return 0


def _compare(paths: list[ServedPath], streams: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the medians of each server. Each round begins with another one."""
    results: dict[str, list[dict[str, float]]] = {path.name: [] for path in paths}
    for number in range(rounds):
        first = number % len(paths)
        for path in [*paths[first:], *paths[:first]]:
            results[path.name].append(_measure(path, streams, seconds))
    return {"streams": streams} | {
        name: {key: round(median(each[key] for each in found), 4) for key in found[0]}
        for name, found in results.items()
    }


def _measure(path: ServedPath, streams: int, seconds: float) -> dict[str, float]:
    before = path.read_cpu()
    found = run_load(path.url, streams, seconds)
    used = path.read_cpu() - before
    return {
        "tokens_per_second": found["tokens"] / found["seconds"],
        "first_token_s": median(found["first_s"]),
        "cpu_microseconds_per_token": used / found["tokens"] * 1e6,
    }


if __name__ == "__main__":
    raise SystemExit(main())
