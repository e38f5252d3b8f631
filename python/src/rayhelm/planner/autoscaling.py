"""Autoscaling in the plan."""

from rayhelm.facts.closed import Closed

__all__ = ["AutoscalingPlan"]


class AutoscalingPlan(Closed):
    """Settings of Ray Serve's autoscaler, besides its limits and its target."""

    initial_replicas: int
    """Replicas at the start of a cluster and after an edit of the model."""
    load_s: float
    """Seconds until a new replica serves, an assumption: with `nodeStart` of its pool on a new node."""
    look_back_s: float
    """Seconds over which requests are averaged."""
    upscale_delay_s: float
    """Seconds of higher load before a replica is added."""
    downscale_delay_s: float
    """Seconds of lower load before a replica is removed."""
    downscale_to_zero_delay_s: float | None = None
    """The same for the last replica, seconds; None if one always stays."""
    policy: str = "ongoing-requests"
    """`ongoing-requests` (Ray's default) or `engine-queue` (rayhelm's)."""
    ttft_s: float | None = None
    """Limit of the time to first token for `engine-queue`, seconds; None if only queue lengths count."""
