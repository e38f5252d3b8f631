"""python -m gateway [--rounds N] [--only NAME...] [--write FILE]"""

import argparse
import datetime
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from gateway import contenders, load, streams
from gateway.cores import on, share
from gateway.plan import MEGABYTE, ROUNDS, STREAMS, TYPICAL, loads
from gateway.report import Figures, added, ratios, summary, tell
from gateway.upstream import Upstream
from rayhelm.processes import create_run_id, stop_run

PEERS = {
    "vllm-router": contenders.vllm_router,
    "vllm-router, by turns": contenders.round_robin,
    "LiteLLM": contenders.lite_llm,
}
PROMISE, OF_LOAD = 3.0, "16 connections"
"""Times the requests a second of vllm-router, for each of ours. The default has not kept it since it tries again."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-gateway", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS), help="peers to measure")
    parser.add_argument("--write", type=Path, help="a file for the result as JSON")
    asked = parser.parse_args()
    console = Console(width=150)
    result = measured(asked.rounds, asked.only, console)
    tell(result, console)
    for name, about in result["contenders"].items():
        console.print(f"{name}: {about['version']}; {about['offers']}; {about['memory_mib']:,.0f} MiB", highlight=False)
    if asked.write:
        asked.write.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return kept(result, console)


def measured(rounds: int, peers: list[str], console: Console) -> dict[str, Any]:
    ours, others = share()
    run, taken = create_run_id(), set[int]()
    figures: Figures = {}
    memory: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        try:
            with on(others):
                upstream = Upstream(run, home, STREAMS, taken)
            stands = [contenders.bare(upstream)]
            stands += [contenders.gateway(name, upstream, run, home / name, ours, taken) for name in contenders.OURS]
            stands += [PEERS[peer](upstream, run, home, ours, taken) for peer in peers]
            for number in range(rounds):
                console.print(f"==> round {number + 1} of {rounds}", highlight=False)
                turn = stands[number % len(stands) :] + stands[: number % len(stands)]
                for one in loads():
                    for contender in turn:
                        note(figures, one.name, contender.name, load.measure(contender, one, others))
                        memory[contender.name] = max(memory.get(contender.name, 0), contender.memory())
                for contender in turn:
                    found = streams.measure(contender, STREAMS, others)
                    note(figures, f"{STREAMS.count} streams", contender.name, found)
        finally:
            stop_run(run)
    return {
        "command": "make bench-gateway",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "rounds": rounds,
        "cores": {"of the contender": len(ours), "of load and upstream": len(others), "shared": ours == others},
        "others_waiting_for_a_core": round(os.getloadavg()[1], 1),
        "body_bytes": {"typical": len(TYPICAL), "large": len(MEGABYTE)},
        "contenders": {
            one.name: {"version": one.version, "offers": one.offers, "memory_mib": round(memory[one.name])}
            for one in stands
        },
        "ratios": {f"{our} / {peer}": ratios(figures, our, peer) for our in contenders.OURS for peer in peers},
        "added": {one.name: added(figures, stands[0].name, one.name) for one in stands[1:]},
        "figures": summary(figures),
    }


def note(figures: Figures, what: str, contender: str, found: dict[str, float]) -> None:
    figures.setdefault(what, {}).setdefault(contender, []).append(found)


def kept(result: dict[str, Any], console: Console) -> int:
    broken = 0
    for ours in contenders.OURS:
        ratio = result["ratios"].get(f"{ours} / vllm-router")
        if ratio is None:
            continue
        found = ratio[OF_LOAD]["requests_per_second"]["median"]
        word = "kept" if found >= PROMISE else "BROKEN"
        broken += found < PROMISE
        told = f"{ours}: {found:.2f} times vllm-router at {OF_LOAD}, at least {PROMISE} promised: {word}"
        console.print(told, highlight=False)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
