"""rayhelm's routers of the data path `Direct` in this process: replicas and the Serve controller are stand-ins."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.serve


class Controller:
    """Keeps the reports that it gets. `error` is what a call raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.reports: list[Any] = []
        self.error = error
        self.record_autoscaling_metrics_from_handle = SimpleNamespace(remote=self.record)

    def record(self, report: bytes) -> None:
        from ray.serve._private.utils import decompress_metric_report

        if self.error:
            raise self.error
        self.reports.append(decompress_metric_report(report))


def build_router(is_asked: asyncio.Event, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A router of a deployment without replicas. It sets the event once a request waits."""
    import ray
    from ray.serve._private.common import DeploymentHandleSource, DeploymentID

    from rayhelm.runtime.first_replica import FirstReplica

    class Updated(asyncio.Event):
        def clear(self) -> None:
            super().clear()
            is_asked.set()

    class Base:
        def __init__(self) -> None:
            self._handle_source = DeploymentHandleSource.REPLICA
            self._deployment_id = DeploymentID("LLMServer", "chat")
            self._replicas: dict[str, str] = {}
            self._replicas_updated_event = Updated()

        async def _choose_replicas_with_backoff(self, pending_request: Any = None) -> Any:
            yield list(self._replicas)

    class Router(FirstReplica, Base):
        pass

    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(get_actor_id=lambda: "actor"))
    return Router()


def choose(monkeypatch: pytest.MonkeyPatch, find: Any) -> list[str]:
    """Return the replicas that a request gets which waits before the first one starts."""
    import ray

    monkeypatch.setattr(ray, "get_actor", find)

    async def run() -> list[str]:
        is_asked = asyncio.Event()
        router = build_router(is_asked, monkeypatch)
        ranks = router._choose_replicas_with_backoff()
        request = asyncio.ensure_future(anext(ranks))
        await is_asked.wait()
        router._replicas["first"] = "first"
        router._replicas_updated_event.set()
        chosen: list[str] = await request
        await ranks.aclose()
        return chosen

    return asyncio.run(run())


def test_router_reports_a_request_that_waits_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller()
    assert choose(monkeypatch, lambda *_, **__: controller) == ["first"]
    assert [report.queued_requests[0].value for report in controller.reports] == [1, 0]
    assert {(report.deployment_id.app_name, report.deployment_id.name) for report in controller.reports} == {
        ("chat", "LLMServer")
    }


def test_request_waits_on_when_the_report_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller(RuntimeError("gone"))
    assert choose(monkeypatch, lambda *_, **__: controller) == ["first"]


def test_request_waits_on_when_there_is_no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: Any, **__: Any) -> Any:
        raise ValueError("no such actor")

    assert choose(monkeypatch, find) == ["first"]


def test_request_waits_for_no_replica_that_hangs_already(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayhelm.runtime import load_router

    # The wait for a probe that is not late would not end.
    monkeypatch.setattr(load_router, "_FRESH_S", 3600.0)
    hangs, answers = (SimpleNamespace(replica_id=name) for name in ("hangs", "answers"))

    class Base:
        _replicas = {"hangs": hangs, "answers": answers}

        async def _probe_queue_lens(self, replicas: list[Any], _: int) -> None:
            if replicas == [hangs]:
                await asyncio.Event().wait()

    class Router(load_router.QueueProbes, Base):
        pass

    async def run() -> bool:
        router: Any = Router()
        probe = asyncio.ensure_future(router._probe_queue_lens([hangs], 0))
        router._probes["hangs"] = -3601.0, probe
        await router._ask([hangs, answers])
        probe.cancel()
        return bool(router._probes["answers"][1].done())

    assert asyncio.run(run())
