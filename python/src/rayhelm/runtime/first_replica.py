"""A router of the data path `Direct` starts the first replica of a model.

Ray scales from zero by the queue that a handle reports. A request for which a handle only chooses a replica, as it does
with `Direct`, is not in this queue (2.60): it would wait for a replica that nothing starts.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import cached_property
from typing import Any

import ray
from ray.serve._private.common import RUNNING_REQUESTS_KEY, DeploymentHandleSource, HandleMetricReport, TimeStampedValue
from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE
from ray.serve._private.utils import compress_metric_report

__all__ = ["FirstReplica"]

_REPORT_S = 1.0
"""Seconds between reports. The controller drops a report after 10 s."""


class FirstReplica:
    """Reports the requests that wait in a router of Ray while the model has no replica."""

    _handle_source: DeploymentHandleSource

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting = 0
        self._reported = 0.0

    async def _choose_replicas_with_backoff(self, pending_request: Any = None) -> AsyncGenerator[list[Any], None]:
        router: Any = super()
        # The handles of Ray's proxies report themselves.
        if self._handle_source == DeploymentHandleSource.REPLICA:
            await self._wait_for_replica()
        async with aclosing(router._choose_replicas_with_backoff(pending_request)) as ranks:
            async for rank in ranks:
                yield rank

    async def _wait_for_replica(self) -> None:
        router: Any = self
        self._waiting += 1
        try:
            while not router._replicas:
                if time.monotonic() - self._reported >= _REPORT_S:
                    self._report()
                router._replicas_updated_event.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(router._replicas_updated_event.wait(), _REPORT_S)
        finally:
            self._waiting -= 1
            if self._reported and not self._waiting:
                self._report()
                self._reported = 0.0

    def _report(self) -> None:
        router: Any = self
        now, self._reported = time.time(), time.monotonic()
        actor = ray.get_runtime_context().get_actor_id()
        report = HandleMetricReport(
            deployment_id=router._deployment_id,
            handle_id=f"{actor}-first-replica",
            actor_id=actor,
            handle_source=self._handle_source,
            queued_requests=[TimeStampedValue(now, self._waiting)],
            metrics={RUNNING_REQUESTS_KEY: {}},
            timestamp=now,
        )
        self._controller.record_autoscaling_metrics_from_handle.remote(compress_metric_report(report))

    @cached_property
    def _controller(self) -> Any:
        return ray.get_actor(SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)
