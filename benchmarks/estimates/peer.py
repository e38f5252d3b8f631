"""Ask AIConfigurator for the questions of a file, in its own environment: python peer.py QUESTIONS ANSWERS

Both files hold one JSON object a line. A question is the keyword arguments of `cli_estimate`. An answer has `ttft_ms`,
`tpot_ms` and `is_over_cache` (the requests exceed the KV cache by its own estimate), or `error`. This file imports
nothing of rayhelm.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def main(questions: Path, answers: Path) -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    ask = import_module("aiconfigurator.cli.api").cli_estimate
    lines = questions.read_text().splitlines()
    with answers.open("w") as out:
        for number, line in enumerate(lines, 1):
            out.write(json.dumps(_answer(ask, json.loads(line))) + "\n")
            print(f"\r{number} of {len(lines)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _answer(ask: Callable[..., Any], question: dict[str, Any]) -> dict[str, Any]:
    try:
        found = ask(**question)
    # It raises many kinds of errors for what it has no data for: each is an answer, and is counted by its kind.
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"ttft_ms": found.ttft, "tpot_ms": found.tpot, "is_over_cache": bool(found.kv_cache_warning)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
