"""What a rehearsal saw."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from pydantic import computed_field

from rayhelm.closed import Closed
from rayhelm.rehearsal.change import Effect
from rayhelm.rehearsal.load_client import RequestResult

__all__ = ["ChangeReport", "FailedRequest", "PoolUsage", "Report", "RequestSummary", "ServiceReport", "list_failures"]

TOLD = 10
"""Lost requests that are told one by one."""


class ServiceReport(Closed):
    """A RayService that played."""

    name: str
    models: tuple[str, ...]
    ready_seconds: float | None
    """From its install until it was ready."""


class ChangeReport(Closed):
    """One release that was changed."""

    chart: str
    name: str
    effect: Effect
    details: tuple[str, ...] = ()
    """What that means, a sentence each."""
    switched_seconds: float | None = None
    """Until another Ray cluster served; null where none was built."""
    seconds: float | None = None
    """Until all that it does was done; null where it was not."""


class PoolUsage(Closed):
    """Cards that the real thing would have held in a pool, at the least number of workers."""

    pool: str
    gpu: str
    resource: str
    """Extended resource; parts of cards count as such."""
    before: int
    peak: int
    after: int
    capacity: int
    """What the pool offers."""


class FailedRequest(Closed):
    """A request without the answer that it should have had. Nothing was tried twice."""

    at: str
    target: str
    kind: str
    after_seconds: float
    error: str


class RequestSummary(Closed):
    """Requests of some time."""

    answered: int
    failed: int
    p50_seconds: float | None
    """Of those that were answered, until the last byte."""
    p99_seconds: float | None
    slowest_seconds: float | None

    @classmethod
    def of(cls, answered: Sequence[RequestResult], lost: Sequence[RequestResult]) -> Self:
        took = sorted(seen.seconds for seen in answered)
        shares = (0.5, 0.99, 1)
        p50, p99, slowest = (took[min(len(took) - 1, int(len(took) * share))] if took else None for share in shares)
        return cls(answered=len(answered), failed=len(lost), p50_seconds=p50, p99_seconds=p99, slowest_seconds=slowest)


class Report(Closed):
    """A rehearsal."""

    fleet: str
    file: str
    change: str
    """File of the new fleet; empty where nothing was changed."""
    cluster: str
    """Of the fleet."""
    server: str
    """API server that it was rehearsed on."""
    context: str
    kuberay: str
    services: tuple[ServiceReport, ...]
    changes: tuple[ChangeReport, ...]
    gpus: tuple[PoolUsage, ...]
    peak_clusters: int
    """Ray clusters at the same time."""
    peak_pods: int
    """Of the stand-ins."""
    peak_memory_gib: float
    """That those pods asked for."""
    before: RequestSummary
    during: RequestSummary | None
    """From the change until all of it was done; null where nothing was changed."""
    failures: tuple[FailedRequest, ...]
    """The first ten."""
    error: str = ""
    """Why the change did not come to its end; empty where it did."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """How to call what runs on, and how to end it; empty where all of it was taken away."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Nothing was lost, and the change came to its end."""
        return not self.error and not self.before.failed and not (self.during and self.during.failed)


def list_failures(seen: Sequence[RequestResult]) -> tuple[FailedRequest, ...]:
    """The first ones, in the order in which they were asked."""
    return tuple(
        FailedRequest(
            at=datetime.fromtimestamp(each.started, UTC).isoformat(timespec="seconds"),
            target=each.target,
            kind=each.kind,
            after_seconds=each.seconds,
            error=each.error,
        )
        for each in sorted(seen, key=lambda each: each.started)[:TOLD]
    )
