"""Run `make bench-tracing`. Both kinds of requests go to the same processes. CPU time, unlike requests per second,
depends little on what else the computer does."""

import argparse
import asyncio
import json
import platform
import statistics
import time
from pathlib import Path

import httpx

from rayhelm import processes
from testbed.live_metrics.endpoint import Endpoint, serve
from testbed.trace_receiver import receive_traces

ROUNDS, REQUESTS, CLIENTS = 8, 60, 4
PATH = "/chat/v1/chat/completions"
BODY = {"model": "chat", "messages": [{"role": "user", "content": "Question"}], "max_tokens": 8, "ignore_eos": True}
"""A short answer of a tiny model, so that the spans are a large share of the work."""
SERVING = ("ray::ProxyActor", "ray::ServeReplica", "VLLM::")
"""Start of the command lines of the processes that a request passes."""


def read_cpu_seconds(endpoint: Endpoint) -> float:
    members = processes.list_members(endpoint.run)
    serving = [each for each in members if " ".join(each.cmdline()).startswith(SERVING)]
    assert len(serving) >= 4, [each.cmdline() for each in members]
    return float(sum(each.cpu_times().user + each.cpu_times().system for each in serving))


async def send(url: str, flags: str) -> None:
    """Send the requests of a round with this `sampled` flag in `traceparent`."""
    headers = {"traceparent": f"00-{'1' * 32}-{'2' * 16}-{flags}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=600, trust_env=False) as http:

        async def work() -> None:
            for _ in range(REQUESTS // CLIENTS):
                (await http.post(PATH, json=BODY)).raise_for_status()

        await asyncio.gather(*(work() for _ in range(CLIENTS)))


def measure_round(endpoint: Endpoint, flags: str) -> float:
    """Return the CPU milliseconds per request, the export of the spans included."""
    before = read_cpu_seconds(endpoint)
    asyncio.run(send(endpoint.serve_url, flags))
    time.sleep(6)  # spans are exported every 5 s
    return (read_cpu_seconds(endpoint) - before) / REQUESTS * 1000


def measure() -> dict[str, object]:
    with receive_traces() as receiver, serve(traces=receiver.url) as endpoint:
        for flags in ("01", "00"):
            measure_round(endpoint, flags)  # warm-up
        before = len(receiver.spans)
        rounds = []
        for number in range(ROUNDS):
            order = ("01", "00") if number % 2 else ("00", "01")
            rounds.append({flags: measure_round(endpoint, flags) for flags in order})
        spans = len(receiver.spans) - before
    extra = [each["01"] - each["00"] for each in rounds]
    return {
        "measured": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "requests_per_round": REQUESTS,
        "cpu_ms_per_request": [
            {"sampled": round(each["01"], 2), "not_sampled": round(each["00"], 2)} for each in rounds
        ],
        "spans_per_sampled_request": round(spans / ROUNDS / REQUESTS, 2),
        "extra_cpu_ms_per_sampled_request": {
            "median": round(statistics.median(extra), 2),
            "lowest": round(min(extra), 2),
            "highest": round(max(extra), 2),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the result")
    arguments = parser.parse_args()
    text = json.dumps(measure(), indent=2) + "\n"
    print(text, end="")
    if arguments.write:
        arguments.write.write_text(text)


if __name__ == "__main__":
    main()
