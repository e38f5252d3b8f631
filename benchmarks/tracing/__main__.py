"""Run `make bench-tracing`. Both kinds of requests go to the same processes, so other load slows both."""

import argparse
import asyncio
import json
import platform
import statistics
import time
from pathlib import Path

import httpx

from testbed.live_metrics.endpoint import serve
from testbed.trace_receiver import receive_traces

ROUNDS, SECONDS, CLIENTS = 8, 6.0, 4
PATH = "/chat/v1/chat/completions"
BODY = {"model": "chat", "messages": [{"role": "user", "content": "Question"}], "max_tokens": 8, "ignore_eos": True}
"""A short answer: spans cost the same for each request, however long it takes."""


async def count_per_second(url: str, flags: str) -> float:
    """Return the requests per second with this `sampled` flag in `traceparent`."""
    headers = {"traceparent": f"00-{'1' * 32}-{'2' * 16}-{flags}"}
    count, start = 0, time.monotonic()
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=600, trust_env=False) as http:

        async def work() -> None:
            nonlocal count
            while time.monotonic() < start + SECONDS:
                (await http.post(PATH, json=BODY)).raise_for_status()
                count += 1

        await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return count / (time.monotonic() - start)


def measure() -> dict[str, object]:
    with receive_traces() as receiver, serve(traces=receiver.url) as endpoint:
        asyncio.run(count_per_second(endpoint.serve_url, "01"))  # warm-up
        before = len(receiver.spans)
        rounds = [
            {name: asyncio.run(count_per_second(endpoint.serve_url, flags)) for name, flags in order}
            for number in range(ROUNDS)
            for order in [[("sampled", "01"), ("not_sampled", "00")][:: 1 if number % 2 else -1]]
        ]
        spans = len(receiver.spans) - before
    ratios = [each["sampled"] / each["not_sampled"] for each in rounds]
    return {
        "measured": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "clients": CLIENTS,
        "rounds": [{name: round(value, 1) for name, value in each.items()} for each in rounds],
        "spans": spans,
        "sampled_to_not_sampled": {
            "median": round(statistics.median(ratios), 3),
            "lowest": round(min(ratios), 3),
            "highest": round(max(ratios), 3),
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
