"""python -m autoscaling [--seeds N] [--write FILE]"""

import argparse
import datetime
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from autoscaling.hour import SHARES, TRACES, TTFT_S, list_jobs, plan_trace, run
from autoscaling.report import Run, list_runs, print_summary, summarize
from autoscaling.service import DECIDE_S, REPORT_S, SCRAPE_S, TICK_S

FIRST_SEED = 11
"""The settings of the policy were chosen with seeds 1 and 2 of both traces."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-autoscaling", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    options = parser.parse_args()
    hours = list(list_jobs(range(FIRST_SEED, FIRST_SEED + options.seeds)))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(run, hours))
    found = summarize(runs, SHARES)
    print_summary(found, Console(width=150))
    if options.write:
        options.write.write_text(json.dumps(_result(found, runs), indent=1, ensure_ascii=False) + "\n")
    return 0


def _result(found: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    plans = {name: plan_trace(name) for name in TRACES}
    return {
        "command": "make bench-autoscaling",
        "seeds": len({run.seed for run in runs}),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "simulated": "replicas (the planner's performance model), loads, router and metrics; real: both policies, Ray's"
        " code of delays and limits, and the arrivals in the CSV files",
        "first_token_s": TTFT_S,
        "seconds": {"tick": TICK_S, "decision": DECIDE_S, "report": REPORT_S, "scrape": SCRAPE_S},
        "plans": {
            name: {
                "gpu": plan.gpu,
                "replicas": plan.replicas,
                "target_ongoing_requests": plan.target_ongoing_requests,
                **plan.scaling.model_dump(exclude={"initial_replicas"}),
            }
            for name, plan in plans.items()
        },
        "summary": found,
        "runs": list_runs(runs),
    }


if __name__ == "__main__":
    raise SystemExit(main())
