"""Two versions of a model behind a gateway that one fleet file renders: stand-ins for their engines, clients that send
requests all the time, and a pipeline that decides, commits and delivers the next weight."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from gateway.kit.process import GatewayProcess, start_gateway
from gateway.kit.upstream import ReceivedRequest, Reply, Upstream, start_upstreams
from gateway.kit.values import Values
from gateway.kit.wait import wait_for
from rayhelm.cli.files import replace_file
from rayhelm.deploy.compose.gateway import build_gateways
from rayhelm.deploy.compose.ray_service import build_ray_service_values
from rayhelm.deploy.values.emit import select_changed
from rayhelm.fleet.load import load_fleet
from rayhelm.live.cost.client import PrometheusClient, open_client
from rayhelm.live.cost.periods import Period
from rayhelm.live.promotion.decide import Wanted
from rayhelm.live.promotion.report import PromotionReport
from rayhelm.live.promotion.run import decide_promotion
from rayhelm.planner.planner import plan_fleet
from shared.prometheus import serve_targets

__all__ = ["CLIENTS", "FLEET", "Engine", "Pipeline", "start_versions"]

FLEET = """\
# The fleet of a team.
fleet: small
clusters:
  main: {apiServer: {cidrs: [10.0.0.1/32]}}
pools:
  gpu: {gpu: L4-24GB, nodes: 4}
models:
  chat:                    # clients send this name
    source: Qwen/Qwen2.5-7B-Instruct
    unpinnedReason: weights of a test
    context: 4096
    slo: {ttft: 1s, latencyShare: 0.85, availability: 0.9}
  chat-next:
    source: Qwen/Qwen3-8B
    unpinnedReason: weights of a test
    context: 4096
    servedAs: {model: chat, version: next, weight: 0}   # raised by `rayhelm promote`
tenants:
  apps: {models: [chat], requestsPerMinute: 1000000, concurrency: 10000}
"""
LOCAL: Values = {
    "timeouts": {"keyRefreshSeconds": 1},
    "autoscaling": {"kind": "None"},
    "replicas": 1,
}
CLIENTS = 4
BOUNDS = (0.5, 1.0)
"""Bounds of two buckets of vLLM's histogram, seconds."""


class Engine:
    """A stand-in for the engine of one version. It waits, fails and answers as planted, and counts as vLLM does."""

    def __init__(self, upstream: Upstream) -> None:
        self.name, self.port = upstream.name, upstream.port
        self.wait_s, self.fails, self.text = 0.0, False, "4"
        """What a test plants."""
        self.received = self._finished = self._late = 0
        upstream.respond = self.respond

    async def respond(self, request: ReceivedRequest, reply: Reply) -> None:
        if request.path == "/metrics":
            await reply.start(content_type="text/plain; version=0.0.4")
            await reply.send("".join(f"{line}\n" for line in self._list_series()).encode())
            await reply.end()
            return
        self.received += 1
        if self.fails:
            await reply.json({"error": {"message": "planted"}}, status=500)
            return
        if self.wait_s:
            await asyncio.sleep(self.wait_s)
        # What is planted, not what a clock says: a busy computer is no slow version.
        self._finished += 1
        self._late += self.wait_s > BOUNDS[-1]
        await reply.json({"endpoint": self.name, "choices": [{"message": {"content": self.text}}]})

    def _list_series(self) -> Iterator[str]:
        if not self._finished:
            return
        labels = f'model_name="chat",ReplicaId="{self.name}"'
        yield f'ray_vllm_request_success_total{{{labels},finished_reason="stop"}} {self._finished}'
        for bound in BOUNDS:
            within = self._finished - self._late
            yield f'ray_vllm_time_to_first_token_seconds_bucket{{{labels},le="{bound}"}} {within}'
        yield f'ray_vllm_time_to_first_token_seconds_bucket{{{labels},le="+Inf"}} {self._finished}'


class Clients:
    """Clients that send one request after another, until the end."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.statuses: Counter[int] = Counter()
        self._gateway, self._stop, self._numbers = gateway, threading.Event(), count()

    @contextmanager
    def send(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._send) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(300)

    def _send(self) -> None:
        with self._gateway.connect() as connection:
            while not self._stop.is_set():
                # The circuit of the gateway counts equal requests.
                prompt = f"{next(self._numbers)} + 2"
                content = {"model": "chat", "messages": [{"role": "user", "content": prompt}]}
                response = connection.request("/v1/chat/completions", content, key="apps-key")
                self.statuses[response.status] += 1


class Pipeline:
    """What a repository with its pipeline and Argo CD does: decide, commit, deliver."""

    def __init__(self, folder: Path, gateway: GatewayProcess, engines: dict[str, Engine]) -> None:
        self.file, self.gateway, self.engines = folder / "fleet.yaml", gateway, engines
        self.clients = Clients(gateway)
        self._folders = (folder / f"prometheus-{number}" for number in count())

    def write_weight(self, weight: int) -> None:
        """Write the fleet file as a person does, and deliver it."""
        self.file.write_text(FLEET.replace("weight: 0", f"weight: {weight}"))
        self._deliver()

    def run(self, steps: tuple[int, ...], *, start: bool = False, quality: Path | None = None) -> PromotionReport:
        """Decide as soon as there are enough requests since the start of the run, write the weight and deliver it."""
        wanted = Wanted(steps, quality_share=1, is_start=start, ignores_share=False)
        with serve_targets(next(self._folders), self._list_jobs()) as url, open_client(url, {}) as client:
            wait_for(lambda: len(client.query(_SCRAPED)) == 1 + len(self.engines), "scrapes of all targets")
            report, before, after = self._decide(client, wanted, quality)
        if before != after:
            replace_file(self.file, before, after, "")
            self._deliver()
        return report

    def _decide(
        self, client: PrometheusClient, wanted: Wanted, quality: Path | None
    ) -> tuple[PromotionReport, str, str]:
        new = self.engines["chat-next"]
        while True:
            now = datetime.now(UTC).replace(microsecond=0)
            period = Period(now - timedelta(hours=1), now)
            found = decide_promotion(client, self.file, "chat-next", quality, wanted, period)
            if not (more := found[0].more_requests):
                return found
            enough = new.received + min(more, _BETWEEN_DECISIONS)
            wait_for(lambda enough=enough: new.received >= enough, f"{more} more requests")

    def _deliver(self) -> None:
        before = self.gateway.output.count("are in effect")
        self.gateway.replace_config(build_values(self.file, self.engines))
        wait_for(lambda: self.gateway.output.count("are in effect") > before, "the new maps are in effect")

    def _list_jobs(self) -> list[dict[str, Any]]:
        labels = {"namespace": "gateway", "rayhelm_dev_gateway": "gateway", "pod": "gateway"}
        jobs = [_scrape("gateway", self.gateway.metrics_port, labels)]
        for name, engine in self.engines.items():
            jobs.append(_scrape(name, engine.port, {"namespace": "models", "rayhelm_dev_service": name}))
        return jobs


_BETWEEN_DECISIONS = 50
"""Requests of the new version. A bad version is found with few."""
_SCRAPED = "count_over_time(up[1h]) > 2"


def _scrape(name: str, port: int, labels: dict[str, str]) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]}


def build_values(file: Path, engines: dict[str, Engine]) -> Values:
    """Return the values of the gateway that `rayhelm render` writes, with the ports of the engines."""
    plan = plan_fleet(load_fleet(file))
    built = build_gateways(plan, build_ray_service_values(plan))
    values = select_changed(built["main"])
    (model,) = values["models"].values()
    for version in model["versions"].values():
        (name,) = version["endpoints"]
        version["endpoints"] = {name: {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": engines[name].port}}
    return {**values, **LOCAL}


@contextmanager
def start_versions(folder: Path) -> Iterator[Pipeline]:
    """Start the gateway and both engines; the new version has the weight 0."""
    (folder / "fleet.yaml").write_text(FLEET)
    with ExitStack() as stack:
        engines = {each.name: Engine(each) for each in stack.enter_context(start_upstreams("chat", "chat-next"))}
        gateway = stack.enter_context(start_gateway(build_values(folder / "fleet.yaml", engines)))
        gateway.wait_for_output("are in effect")
        yield Pipeline(folder, gateway, engines)
