"""python -m gateway [--rounds N] [--only NAME...] [--write FILE]"""

import argparse
import datetime
import json
import os
import re
import sys
import tempfile
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console

from gateway import contenders, load, streams, waiting
from gateway.cores import pin_to, split_cores
from gateway.plan import (
    GOALS,
    HUNDRED_KILOBYTES,
    MEGABYTE,
    PART_OF_PLAIN,
    ROUNDS,
    STREAM_GOALS,
    STREAMS,
    TYPICAL,
    WAITING_GOAL,
    loads,
)
from gateway.report import Figures, added, print_tables, ratios, summary
from gateway.upstream import Upstream
from rayhelm.processes import create_run_id, stop_run

PEERS = {
    "HAProxy without rules": contenders.plain,
    "vllm-router": contenders.vllm_router,
    "vllm-router, round robin": contenders.round_robin,
    "LiteLLM": contenders.lite_llm,
}
DEFAULTS, ROUTER, PLAIN = "gateway", "vllm-router", "HAProxy without rules"
"""The contender with the chart's defaults, which the goals are for, and those that it is compared with."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-gateway", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS), help="peers to measure")
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    arguments = parser.parse_args()
    console = Console(width=150)
    result = measure_all(arguments.rounds, arguments.only, console)
    print_tables(result, console)
    for name, about in result["contenders"].items():
        console.print(f"{name}: {about['version']}; {about['offers']}; {about['memory_mib']:,.0f} MiB", highlight=False)
    if arguments.write:
        arguments.write.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return check_goal(result, console)


def measure_all(rounds: int, peers: list[str], console: Console) -> dict[str, Any]:
    contender_cores, load_cores = split_cores()
    run, taken = create_run_id(), set[int]()
    figures: Figures = {}
    memory: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        try:
            with pin_to(load_cores):
                upstream = Upstream(run, home, STREAMS, taken)
            running = [contenders.bare(upstream)]
            running += [
                contenders.gateway(name, upstream, run, home / name, contender_cores, taken) for name in contenders.OURS
            ]
            running += [PEERS[peer](upstream, run, home, contender_cores, taken) for peer in peers]
            for number in range(rounds):
                console.print(f"==> round {number + 1} of {rounds}", highlight=False)
                turn = running[number % len(running) :] + running[: number % len(running)]
                for one in loads():
                    for contender in turn:
                        add_figure(figures, one.name, contender.name, load.measure(contender, one, load_cores))
                        memory[contender.name] = max(memory.get(contender.name, 0), contender.memory())
                for contender in turn:
                    found = streams.measure(contender, STREAMS, load_cores)
                    add_figure(figures, streams_name(), contender.name, found)
            waiting_kib = waiting.measure(home, contender_cores, load_cores, taken)
        finally:
            stop_run(run)
    return {
        "command": "make bench-gateway",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "rounds": rounds,
        "cores": {
            "of the contender": len(contender_cores),
            "of load and upstream": len(load_cores),
            "shared": contender_cores == load_cores,
        },
        "others_waiting_for_a_core": round(os.getloadavg()[1], 1),
        "body_bytes": {"typical": len(TYPICAL), "long": len(HUNDRED_KILOBYTES), "large": len(MEGABYTE)},
        "contenders": {
            one.name: {"version": one.version, "offers": one.offers, "memory_mib": round(memory[one.name])}
            for one in running
        },
        "ratios": {f"{our} / {peer}": ratios(figures, our, peer) for our in contenders.OURS for peer in peers},
        "kib_of_a_waiting_request": round(waiting_kib, 1),
        "added_to_peers": {f"{our} / {peer}": added(figures, peer, our) for our in contenders.OURS for peer in peers},
        "added": {one.name: added(figures, running[0].name, one.name) for one in running[1:]},
        "figures": summary(figures),
    }


def streams_name() -> str:
    return f"{STREAMS.count} streams"


def add_figure(figures: Figures, what: str, contender: str, found: dict[str, float]) -> None:
    figures.setdefault(what, {}).setdefault(contender, []).append(found)


def check_goal(result: dict[str, Any], console: Console) -> int:
    """Return 1 if a goal is missed."""
    pair, missed = f"{DEFAULTS} / {ROUTER}", 0

    def check(text: str, *, is_reached: bool) -> None:
        nonlocal missed
        missed += not is_reached
        console.print(f"{text}: {'reached' if is_reached else 'MISSED'}", highlight=False)

    for name, found in result["ratios"].get(pair, {}).items():
        if name in GOALS:
            times, goal = found["requests_per_second"]["median"], GOALS[name]
            most = find_rate_of_plain(result, name)
            reachable = min(goal, PART_OF_PLAIN * most)
            why = "" if most >= goal else f", which {PLAIN} misses with {most:.2f} x; so {reachable:.2f} x"
            check(f"{times:.2f} x {ROUTER} at {name}, goal {goal} x{why}", is_reached=times >= reachable)
    for name, found in result["added_to_peers"].get(pair, {}).get(streams_name(), {}).items():
        if name in STREAM_GOALS:
            more, goal = found["median"], STREAM_GOALS[name]
            check(f"streams: {name} {more:+.2f} against {ROUTER}, goal {goal:+.2f}", is_reached=more <= goal)
    kib = result["kib_of_a_waiting_request"]
    check(f"{kib:.0f} KiB per waiting request, goal {WAITING_GOAL:.0f} KiB", is_reached=kib <= WAITING_GOAL)
    if missed and not has_small_copies(result["contenders"][DEFAULTS]["version"]):
        console.print(
            "HAProxy before 3.4.5 copies a full buffer per request for retries. HAPROXY=PATH measures another binary."
        )
    return 1 if missed else 0


def find_rate_of_plain(result: dict[str, Any], load: str) -> float:
    """Return the rate of HAProxy without rules as a multiple of vllm-router's, from medians; infinite where it did not
    run."""
    rates = {name: found["requests_per_second"]["median"] for name, found in result["figures"][load].items()}
    return float(rates[PLAIN] / rates[ROUTER]) if PLAIN in rates else inf


def has_small_copies(version: str) -> bool:
    """Return whether this version of HAProxy keeps small copies of requests for retries."""
    numbers = re.findall(r"\d+", version)[:3]
    return tuple(int(number) for number in numbers) >= (3, 4, 5)


if __name__ == "__main__":
    sys.exit(main())
