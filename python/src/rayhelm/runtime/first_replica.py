"""A router of the data path `Direct` starts the first replica of a model.

Ray scales from zero by the queue that a handle reports. A request for which a handle only chooses a replica, as it does
with `Direct`, is not in this queue (2.60): it would wait for a replica that nothing starts.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import ray
from ray.serve._private.common import RUNNING_REQUESTS_KEY, DeploymentHandleSource, HandleMetricReport, TimeStampedValue
from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE
from ray.serve._private.utils import compress_metric_report

__all__ = ["FirstReplica"]

logger = logging.getLogger("ray.serve")

_REPORT_S = 1.0
"""Seconds between reports. The controller drops a report after 10 s."""


class FirstReplica:
    """Reports the requests that wait in a router of Ray while the model has no replica."""

    _handle_source: DeploymentHandleSource

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting = 0
        self._reported = 0.0
        self._controller: Any = None

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
                router._replicas_updated_event.clear()
                if time.monotonic() - self._reported >= _REPORT_S:
                    self._reported = time.monotonic()
                    await self._find_controller()
                    self._report()
                with suppress(TimeoutError):
                    await asyncio.wait_for(router._replicas_updated_event.wait(), _REPORT_S)
        finally:
            self._waiting -= 1
            if self._reported and not self._waiting:
                self._report()
                self._reported = 0.0

    async def _find_controller(self) -> None:
        """Look for the controller in a thread: the head answers, and the loop has other requests."""
        if self._controller is not None:
            return
        try:
            self._controller = await asyncio.to_thread(ray.get_actor, SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)
        except Exception:
            logger.exception("rayhelm found no Serve controller; the request waits, and a router asks again")

    def _report(self) -> None:
        """Report to the controller. A report that fails ends no request."""
        if self._controller is None:
            return
        try:
            self._controller.record_autoscaling_metrics_from_handle.remote(compress_metric_report(self._build_report()))
        except Exception:
            logger.exception("rayhelm cannot report the requests that wait for a first replica")

    def _build_report(self) -> HandleMetricReport:
        router: Any = self
        now, actor = time.time(), ray.get_runtime_context().get_actor_id()
        return HandleMetricReport(
            deployment_id=router._deployment_id,
            handle_id=f"{actor}-first-replica",
            actor_id=actor,
            handle_source=self._handle_source,
            queued_requests=[TimeStampedValue(now, self._waiting)],
            metrics={RUNNING_REQUESTS_KEY: {}},
            timestamp=now,
        )
