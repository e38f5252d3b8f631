"""Loads, bodies and number of rounds."""

import json
from dataclasses import dataclass

__all__ = [
    "GOALS",
    "HUNDRED_KILOBYTES",
    "MEGABYTE",
    "PART_OF_PLAIN",
    "ROUNDS",
    "STREAMS",
    "STREAM_GOALS",
    "TYPICAL",
    "WAITING_GOAL",
    "Load",
    "Streams",
    "loads",
]

ROUNDS = 9
"""Rounds in which each contender is measured. Reported: median, minimum and maximum."""


@dataclass(frozen=True)
class Load:
    """Requests without a pause on a number of connections."""

    name: str
    connections: int
    body: bytes
    warm_up: float = 1.0
    """Seconds before the measurement."""
    seconds: float = 3.0


@dataclass(frozen=True)
class Streams:
    """Concurrent streams."""

    count: int = 200
    tokens: int = 40
    pause: float = 0.05
    """Seconds between two tokens of a stream."""


def chat(system: str, turns: int, user: str) -> bytes:
    """Return a body in the form of OpenAI's client: the messages first, then the model."""
    messages = [{"role": "system", "content": system}]
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"{user} ({turn})"},
            {"role": "assistant", "content": "It depends on what you want to do with it. " * 4},
        ]
    messages.append({"role": "user", "content": user})
    return json.dumps({"messages": messages, "model": "llama", "max_tokens": 256, "temperature": 0.2}).encode()


SYSTEM = "You are a helpful assistant. Answer in short sentences, and say so where you do not know. "
TYPICAL = chat(SYSTEM * 6, 4, "How do I sort a list of records by two keys, one of them backwards?")
"""A system prompt and a few turns: 1.9 kB."""
MEGABYTE = chat(SYSTEM * 6, 0, "Sum this up: " + "all that was said before, and some more; " * 24_000)
"""One long document in a message: 0.99 MB, and the default of `limits.bodyBytes` is 1 MiB."""
HUNDRED_KILOBYTES = chat(SYSTEM * 6, 0, "Sum this up: " + "all that was said before, and some more; " * 2_400)
"""A long prompt, larger than HAProxy's small buffer: 99 kB."""
STREAMS = Streams()


GOALS = {
    "1 connection": 3.0,
    "16 connections": 3.0,
    "128 connections": 3.0,
    "a body of 100 kB, 16 connections": 1.3,
}
"""Requests per second of the gateway with its defaults, as a multiple of vllm-router's, by load."""
PART_OF_PLAIN = 0.8
"""Where HAProxy without rules misses a goal, no gateway of it reaches it: this part of its rate is the goal."""
STREAM_GOALS = {"first_p50_ms": 0.1, "token_p50_ms": 0.1}
"""Milliseconds by which the median of the streams may be above vllm-router's, whose own rounds differ by more."""
WAITING_GOAL = 102.4
"""Most KiB of memory that one more waiting request of the typical size takes: 0.1 MiB."""


def loads() -> list[Load]:
    return [
        *(Load(f"{count} connection{'s' if count > 1 else ''}", count, TYPICAL) for count in (1, 16, 128)),
        Load("a body of 100 kB, 16 connections", 16, HUNDRED_KILOBYTES),
        Load("a body of 1 MB, 4 connections", 4, MEGABYTE),
    ]
