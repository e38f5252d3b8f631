"""Decide the number of replicas: Ray's own rule, with a target that is corrected by the engines' metrics.

Ray divides the requests in flight by a target per replica. The target comes from a plan and is as good as the plan's
lengths and speeds. This policy multiplies it by a correction. The correction changes only if the rule asks for no more
replicas but the engines are late, or the replicas are full but the engines are in time; not while replicas load.
"""

from dataclasses import dataclass, replace
from math import ceil

__all__ = ["Decision", "Measurement", "PolicyState", "Settings", "decide"]


@dataclass(frozen=True)
class Settings:
    """Parameters of the decision."""

    target: float
    """Requests in flight per replica, from the plan."""
    goal: float = 0.95
    """Share of requests whose first token has to be in time."""
    waiting: float = 2.0
    """Largest number of requests that may wait in the engine of a replica."""
    min_correction: float = 0.6
    """Smallest correction. Plans are off by less, and it limits the cost if requests are late for another reason."""
    max_correction: float = 1.25
    """Largest correction; Serve also limits requests by `max_ongoing_requests`."""
    max_decrease: float = 0.85
    """Smallest factor of one correction if the engines are late."""
    increase: float = 1.05
    """Factor of one correction if the engines have capacity."""
    interval_s: float = 150.0
    """Seconds after a correction or the start of a replica until the next correction: older metrics have to expire."""
    fill: float = 0.9
    """Share of the target that fewer replicas may reach after scaling down, so that the number does not oscillate."""
    max_growth: float = 2.0
    """Largest factor of scaling up in one step."""
    max_shrink: float = 0.5
    """Smallest factor of scaling down in one step."""


@dataclass(frozen=True)
class Measurement:
    """Metrics of a deployment at one time."""

    now: float
    """Seconds."""
    ongoing: float
    """Requests in flight, averaged by Ray, including those that wait for a replica."""
    running: int
    """Running replicas."""
    target_replicas: int
    """Current target; some of these replicas may still load."""
    waiting: float | None = None
    """Requests that wait in the engines; None if Prometheus does not answer."""
    in_time: float | None = None
    """Share of first tokens in time; None if there are too few, or Prometheus does not answer."""


@dataclass(frozen=True)
class PolicyState:
    """What the policy keeps from one decision to the next."""

    correction: float = 1.0
    corrected_at: float | None = None
    """Time of the last correction, or of the first decision; seconds."""


@dataclass(frozen=True)
class Decision:
    replicas: int
    state: PolicyState
    reason: str


def decide(measurement: Measurement, state: PolicyState, settings: Settings) -> Decision:
    """Return the wanted number of replicas. Serve applies its delays and limits afterwards."""
    if measurement.running == 0:
        return Decision(measurement.target_replicas, state, "no replica is running yet")
    if measurement.waiting is None and measurement.in_time is None:
        return Decision(
            ceil(measurement.ongoing / settings.target), state, "no metrics from Prometheus: Ray's own rule"
        )
    late = _is_late(measurement, settings)
    state = _update_state(measurement, state, settings, late=late)
    need = measurement.ongoing / (settings.target * state.correction)
    if need > measurement.target_replicas:
        limit = max(measurement.target_replicas + 1, int(measurement.target_replicas * settings.max_growth))
        return Decision(min(ceil(need), limit), state, "more requests than the replicas can take")
    fewer = max(ceil(need / settings.fill), int(measurement.target_replicas * settings.max_shrink))
    if fewer < measurement.target_replicas:
        return Decision(fewer, state, "fewer replicas are enough")
    return Decision(measurement.target_replicas, state, "the number of replicas is right")


def _is_late(measurement: Measurement, settings: Settings) -> bool:
    queued = measurement.waiting is not None and measurement.waiting > settings.waiting * measurement.running
    return queued or (measurement.in_time is not None and measurement.in_time < settings.goal)


def _update_state(measurement: Measurement, state: PolicyState, settings: Settings, *, late: bool) -> PolicyState:
    # Replicas that load will help, and the metrics still include the time before them.
    if state.corrected_at is None or measurement.target_replicas > measurement.running:
        return replace(state, corrected_at=measurement.now)
    if measurement.now - state.corrected_at < settings.interval_s:
        return state
    need = measurement.ongoing / (settings.target * state.correction)
    if late and need <= measurement.running:
        # The engines are late with this load per replica, so the target has to be below it.
        below = settings.fill * need / measurement.running
        return _apply_factor(state, settings, max(settings.max_decrease, below), measurement.now)
    # Raise the target only with complete metrics, and only if the replicas were full.
    is_complete = measurement.waiting is not None and measurement.in_time is not None
    if is_complete and not late and need >= settings.fill * measurement.running:
        return _apply_factor(state, settings, settings.increase, measurement.now)
    return state


def _apply_factor(state: PolicyState, settings: Settings, factor: float, now: float) -> PolicyState:
    correction = min(max(state.correction * factor, settings.min_correction), settings.max_correction)
    return replace(state, correction=correction, corrected_at=now)
