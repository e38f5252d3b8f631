"""What a rehearsal saw."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self

from pydantic import computed_field

from rayhelm.closed import Closed
from rayhelm.rehearsal.caller import Seen
from rayhelm.rehearsal.change import Does

__all__ = ["CardsHeld", "Change", "Lost", "Report", "Requests", "Service", "lost_of"]

TOLD = 10
"""Lost requests that are told one by one."""


class Service(Closed):
    """A RayService that played."""

    name: str
    models: tuple[str, ...]
    ready_seconds: float | None
    """From its install until it was ready."""


class Change(Closed):
    """One release that was changed."""

    chart: str
    name: str
    does: Does
    says: tuple[str, ...] = ()
    """What that means, a sentence each."""
    switched_seconds: float | None = None
    """Until another Ray cluster served; null where none was built."""
    seconds: float | None = None
    """Until all that it does was done; null where it was not."""


class CardsHeld(Closed):
    """Cards that the real thing would have held in a pool, at the least number of workers."""

    pool: str
    gpu: str
    resource: str
    """Extended resource; parts of cards count as such."""
    before: int
    most: int
    after: int
    has: int
    """What the pool offers."""


class Lost(Closed):
    """A request without the answer that it should have had. Nothing was tried twice."""

    at: str
    target: str
    kind: str
    after_seconds: float
    wrong: str


class Requests(Closed):
    """Requests of some time."""

    answered: int
    lost: int
    p50_seconds: float | None
    """Of those that were answered, until the last byte."""
    p99_seconds: float | None
    slowest_seconds: float | None

    @classmethod
    def of(cls, answered: Sequence[Seen], lost: Sequence[Seen]) -> Self:
        took = sorted(seen.took for seen in answered)
        shares = (0.5, 0.99, 1)
        p50, p99, slowest = (took[min(len(took) - 1, int(len(took) * share))] if took else None for share in shares)
        return cls(answered=len(answered), lost=len(lost), p50_seconds=p50, p99_seconds=p99, slowest_seconds=slowest)


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
    services: tuple[Service, ...]
    changes: tuple[Change, ...]
    cards: tuple[CardsHeld, ...]
    clusters_at_most: int
    """Ray clusters at the same time."""
    pods_at_most: int
    """Of the stand-ins."""
    memory_gib_at_most: float
    """That those pods asked for."""
    before: Requests
    during: Requests | None
    """From the change until all of it was done; null where nothing was changed."""
    lost: tuple[Lost, ...]
    """The first ten."""
    failed: str = ""
    """Why the change did not come to its end; empty where it did."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """How to call what runs on, and how to end it; empty where all of it was taken away."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Nothing was lost, and the change came to its end."""
        return not self.failed and not self.before.lost and not (self.during and self.during.lost)


def lost_of(seen: Sequence[Seen]) -> tuple[Lost, ...]:
    """The first ones, in the order in which they were asked."""
    return tuple(
        Lost(
            at=datetime.fromtimestamp(each.begun, UTC).isoformat(timespec="seconds"),
            target=each.target,
            kind=each.kind,
            after_seconds=each.took,
            wrong=each.wrong,
        )
        for each in sorted(seen, key=lambda each: each.begun)[:TOLD]
    )
