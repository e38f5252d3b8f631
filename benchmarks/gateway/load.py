"""Requests without a pause on a number of connections, sent and timed by bombardier."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from gateway.contenders import Contender
from gateway.cores import pin_to
from gateway.plan import Load
from testbed.tools import program

__all__ = ["measure"]


def measure(contender: Contender, load: Load, cores: set[int]) -> dict[str, float]:
    """Measure requests per second, latency in ms (50th and 99th percentile) and CPU time per request in µs.

    Raises AssertionError if a response was not 200: refused requests are fast.
    """
    bombard(contender, load, load.warm_up, cores)
    before = contender.cpu()
    result = bombard(contender, load, load.seconds, cores)
    count = result["req2xx"]
    taken = result["latency"]["percentiles"]
    return {
        "requests_per_second": count / result["timeTakenSeconds"],
        "p50_ms": taken["50"] / 1000,
        "p99_ms": taken["99"] / 1000,
        "cpu_us": (contender.cpu() - before) / count * 1e6,
    }


def bombard(contender: Contender, load: Load, seconds: float, cores: set[int]) -> dict[str, Any]:
    """Run bombardier and return `result` of its output."""
    with tempfile.NamedTemporaryFile() as body, pin_to(cores):
        Path(body.name).write_bytes(load.body)
        command = [program("bombardier"), "-c", str(load.connections), "-d", f"{seconds}s", "-t", "60s", "-l"]
        command += ["-m", "POST", "-f", body.name, "-H", "Content-Type: application/json"]
        command += ["-H", f"Authorization: Bearer {contender.key}", "-o", "json", "-p", "r", contender.url]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{contender.name}, {load.name}: {done.stdout}{done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout)["result"]
    wrong = {key: result[key] for key in ("req1xx", "req3xx", "req4xx", "req5xx", "others") if result[key]}
    assert not wrong, f"{contender.name}, {load.name}: {wrong}"
    assert result["req2xx"], f"{contender.name}, {load.name}: no response"
    return result
