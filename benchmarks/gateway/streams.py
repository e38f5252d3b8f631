"""Concurrent streams: time to the first token, and transfer time of each token.

Run as `python -m gateway.streams URL COUNT TOKENS SECONDS-BETWEEN-STARTS`: a separate process on the upstream's cores.
"""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from urllib.parse import urlsplit

from gateway.contenders import KEY, Contender
from gateway.cores import pin_to
from gateway.plan import TYPICAL, Streams

__all__ = ["measure"]

STAMP = re.compile(rb'"content": ?"(\d{10,})"')


def measure(contender: Contender, streams: Streams, cores: set[int]) -> dict[str, float]:
    """Measure in ms: the first token since the request, and each token since the upstream sent it.

    Raises AssertionError if a token is missing.
    """
    spread = streams.pause * streams.tokens / 4 / streams.count
    command = [sys.executable, "-m", "gateway.streams", contender.url]
    with pin_to(cores):
        arguments = [str(streams.count), str(streams.tokens), str(spread)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    wanted = streams.count * streams.tokens
    assert found.pop("tokens") == wanted, f"{contender.name}: {found} of {wanted} tokens arrived"
    return found


async def main(url: str, count: int, tokens: int, spread: float) -> None:
    address = urlsplit(url)
    begun = asyncio.get_running_loop().time()
    tasks = [
        stream(address.hostname or "", address.port or 0, address.path, begun + at * spread) for at in range(count)
    ]
    found = await asyncio.gather(*tasks)
    first = sorted(first for first, _ in found)
    delays = sorted(delay for _, own in found for delay in own)
    print(
        json.dumps(
            {
                "tokens": len(delays),
                "first_p50_ms": statistics.median(first),
                "first_p99_ms": first[int(len(first) * 0.99)],
                "token_p50_ms": statistics.median(delays),
                "token_p99_ms": delays[int(len(delays) * 0.99)],
            }
        )
    )


async def stream(host: str, port: int, path: str, begin: float) -> tuple[float, list[float]]:
    """Return the time of the first token and of each token, in ms."""
    await asyncio.sleep(begin - asyncio.get_running_loop().time())
    body = TYPICAL[:-1] + b', "stream": true}'
    started = time.monotonic_ns()
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    delays: list[float] = []
    first, rest = 0.0, b""
    while b"[DONE]" not in rest and (data := await reader.read(65_536)):
        now = time.monotonic_ns()
        *events, rest = (rest + data).split(b"\n\n")
        for event in events:
            for stamp in STAMP.findall(event):
                first = first or (now - started) / 1e6
                delays.append((now - int(stamp)) / 1e6)
            if b"[DONE]" in event:
                rest = event
    writer.close()
    return first, delays


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
