"""The decision about a version. Its JSON is a contract (`rayhelm promote --format json`)."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from rayhelm.facts.closed import Closed

__all__ = ["CommitMessage", "CriterionReport", "PromotionDecision", "PromotionReport", "QualityReport"]


class PromotionDecision(StrEnum):
    """What happens to the weight."""

    promote = "promote"
    """It rises to the next step."""
    keep = "keep"
    """It stays, for the reason that is given."""
    roll_back = "roll back"
    """It becomes 0."""
    finished = "finished"
    """The last step is reached and all objectives are met."""


class CriterionReport(Closed):
    """One objective. Shares are from 0 to 1."""

    name: Literal["server errors", "engine errors", "ttft", "tpot"]
    limit_s: float | None = None
    """Objective of a latency, seconds."""
    allowed_share: float | None
    """Share of failures that the objective allows; null without an objective."""
    requests: int
    failures: int
    present_requests: int
    present_failures: int
    needed_requests: int
    """Requests with which the test finds `found_share` with the probability `power`."""
    found_share: float
    verdict: Literal["met", "too few requests", "missed", "worse", "missed by both"]


class QualityReport(Closed):
    """Golden prompts."""

    passed: int
    failed: int
    needed_share: float
    """Share that has to pass."""
    is_enough: bool


class CommitMessage(Closed):
    """Message of a commit; `body` is also the text of a pull request."""

    subject: str
    body: str


class PromotionReport(Closed):
    """What to do with the weight of a version, and why."""

    fleet: str
    model: str
    served_as: str
    """Name that clients send."""
    version: str
    path: str
    """Key of the fleet file with the weight."""
    decision: PromotionDecision
    weight: int
    next_weight: int
    """`weight` again if it stays."""
    reason: str
    more_requests: int = 0
    """Requests that are missing; 0 if others are the reason."""
    start: datetime
    end: datetime
    missing_minutes: int = 0
    """Minutes of the period without data."""
    significance: float
    power: float
    criteria: tuple[CriterionReport, ...] = ()
    quality: QualityReport | None = None
    warnings: tuple[str, ...] = ()
    """What to look at before the change is merged."""
    diff: str = ""
    """Unified diff of the fleet file; empty if the weight stays."""
    commit: CommitMessage | None = None
    is_written: bool = False
