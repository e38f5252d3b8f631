"""The report of a rehearsal."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from pydantic import computed_field

from rayhelm.facts.closed import Closed
from rayhelm.run.rehearsal.change import Effect
from rayhelm.run.rehearsal.load_client import RequestResult

__all__ = ["ChangeReport", "FailedRequest", "PoolUsage", "Report", "RequestSummary", "ServiceReport", "list_failures"]

MAX_FAILURES = 10
"""Failed requests that are listed."""


class ServiceReport(Closed):
    """A RayService of the rehearsal."""

    name: str
    models: tuple[str, ...]
    ready_seconds: float | None
    """Seconds from its installation until it was ready."""


class ChangeReport(Closed):
    """One release that was changed."""

    chart: str
    name: str
    effect: Effect
    details: tuple[str, ...] = ()
    """What that means, a sentence each."""
    switched_seconds: float | None = None
    """Seconds until another Ray cluster was active; null if none was created."""
    seconds: float | None = None
    """Seconds until the change was complete; null if it was not."""


class PoolUsage(Closed):
    """GPUs of a pool that the real fleet would have used, with the minimum number of workers."""

    pool: str
    gpu: str
    resource: str
    """Extended resource; GPU partitions count as such."""
    before: int
    peak: int
    after: int
    capacity: int
    """GPUs of the pool."""


class FailedRequest(Closed):
    """A request without a correct answer. Nothing is retried."""

    at: str
    target: str
    kind: str
    seconds: float
    error: str


class RequestSummary(Closed):
    """Requests of a period."""

    answered: int
    failed: int
    p50_seconds: float | None
    """Of answered requests, until the last byte."""
    p99_seconds: float | None
    slowest_seconds: float | None

    @classmethod
    def summarize(cls, answered: Sequence[RequestResult], failed: Sequence[RequestResult]) -> Self:
        seconds = sorted(result.seconds for result in answered)
        shares = (0.5, 0.99, 1)
        p50, p99, slowest = (
            seconds[min(len(seconds) - 1, int(len(seconds) * share))] if seconds else None for share in shares
        )
        return cls(
            answered=len(answered), failed=len(failed), p50_seconds=p50, p99_seconds=p99, slowest_seconds=slowest
        )


class Report(Closed):
    """A rehearsal."""

    fleet: str
    file: str
    change: str
    """File of the new fleet; empty without a change."""
    cluster: str
    """Cluster of the fleet."""
    server: str
    """API server of the cluster that it was rehearsed on."""
    context: str
    kuberay: str
    services: tuple[ServiceReport, ...]
    changes: tuple[ChangeReport, ...]
    gpus: tuple[PoolUsage, ...]
    peak_clusters: int
    """Largest number of Ray clusters at the same time."""
    peak_pods: int
    """Largest number of pods of the stand-ins."""
    peak_memory_gib: float
    """Memory that those pods requested."""
    before: RequestSummary
    during: RequestSummary | None
    """From the start of the change; null without a change."""
    failures: tuple[FailedRequest, ...]
    """The first ten."""
    error: str = ""
    """Why the change is incomplete; empty if it is complete."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """How to send requests and how to remove everything; empty if everything was removed."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """No request failed, and the change is complete."""
        return not self.error and not self.before.failed and not (self.during and self.during.failed)


def list_failures(failed: Sequence[RequestResult]) -> tuple[FailedRequest, ...]:
    """Return the first failed requests in the order of their start."""
    return tuple(
        FailedRequest(
            at=datetime.fromtimestamp(each.started, UTC).isoformat(timespec="seconds"),
            target=each.target,
            kind=each.kind,
            seconds=each.seconds,
            error=each.error,
        )
        for each in sorted(failed, key=lambda each: each.started)[:MAX_FAILURES]
    )
