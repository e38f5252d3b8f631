"""Streams in a closed loop: python -m data_path.load URL STREAMS SECONDS prints tokens, seconds and times to the first
token as JSON. A process of its own, so that its CPU time is not counted."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from data_path.paths import MODEL

__all__ = ["TOKENS", "run_load"]

TOKENS = 128
"""Generated tokens of each stream."""


def run_load(url: str, streams: int, seconds: float) -> dict[str, Any]:
    """Send streams one after another from so many clients. Raises CalledProcessError if one has not all its tokens."""
    command = [sys.executable, "-m", "data_path.load", url, str(streams), str(seconds)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


async def _measure(url: str, streams: int, seconds: float) -> dict[str, Any]:
    address = urlsplit(url)
    deadline, begun = time.monotonic() + seconds, time.monotonic()
    firsts: list[float] = []

    async def work() -> int:
        tokens = 0
        while time.monotonic() < deadline:
            first, count = await _stream(str(address.hostname), int(address.port or 80), address.path)
            firsts.append(first)
            tokens += count
        return tokens

    tokens = sum(await asyncio.gather(*(work() for _ in range(streams))))
    return {"tokens": tokens, "seconds": time.monotonic() - begun, "first_s": sorted(firsts)}


async def _stream(host: str, port: int, path: str) -> tuple[float, int]:
    """Return the seconds to the first token, and the number of tokens."""
    body = json.dumps(
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "Tell me of the sea."}],
            "max_tokens": TOKENS,
            "ignore_eos": True,
            "stream": True,
        }
    ).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    # The first event has the role alone.
    begun, first, read = time.monotonic(), 0.0, b""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head.encode() + body)
    while data := await reader.read(1 << 16):
        if not first and b'"content":"' in data.replace(b'"content":""', b""):
            first = time.monotonic() - begun
        read += data
    writer.close()
    assert b"data: [DONE]" in read, read[-300:]
    return first, TOKENS


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
