"""How many replicas: Ray's own rule, with a target that the engines correct.

Ray divides the requests in flight by a target for each replica. That target comes out of a plan, so it is as good as
the plan's lengths and speeds. Here it is multiplied by a correction, which is learned only where the rule is content
and the engines are not, or the other way round; anything else would be learned from replicas that still load.
"""

from dataclasses import dataclass, replace
from math import ceil

__all__ = ["Decision", "Memory", "Seen", "Settings", "decide"]


@dataclass(frozen=True)
class Settings:
    """Bounds of what may be decided."""

    target: float
    """Requests in flight per replica that the plan aims at."""
    goal: float = 0.95
    """Share of requests whose first token has to come in time."""
    waiting: float = 2.0
    """Requests that may wait in the engine of one replica."""
    least: float = 0.6
    """Smallest correction of the target: plans are off by less, and what is late for another reason costs no more."""
    most: float = 1.25
    """Largest one; Serve itself stops at `max_ongoing_requests`."""
    tighten: float = 0.85
    """Smallest factor on the correction when the engines are late."""
    loosen: float = 1.05
    """Factor when they have room."""
    settle_s: float = 150.0
    """Seconds without a correction or a load before the next one: what was seen before has to be out of the figures."""
    keep: float = 0.9
    """Part of the target up to which fewer replicas would be filled: the room between growing and shrinking."""
    growth: float = 2.0
    """Largest factor of one step up."""
    shrink: float = 0.5
    """Smallest factor of one step down."""


@dataclass(frozen=True)
class Seen:
    """One look at a deployment."""

    now: float
    """Seconds."""
    ongoing: float
    """Requests in flight, by Ray's own count: averaged, and those that wait for a replica among them."""
    running: int
    """Replicas that serve."""
    wanted: int
    """Replicas asked for before; some may still load."""
    waiting: float | None = None
    """Requests that wait in the engines; None where Prometheus does not tell."""
    in_time: float | None = None
    """Share of first tokens that came in time; None where too few did, or nobody tells."""


@dataclass(frozen=True)
class Memory:
    """What is kept from one decision to the next."""

    correction: float = 1.0
    at: float | None = None
    """When it was last corrected, or first looked, seconds."""


@dataclass(frozen=True)
class Decision:
    replicas: int
    memory: Memory
    why: str


def decide(seen: Seen, memory: Memory, settings: Settings) -> Decision:
    """Replicas to ask for; Serve lays its delays and bounds over them."""
    if seen.running == 0:
        return Decision(seen.wanted, memory, "no replica serves yet")
    if seen.waiting is None and seen.in_time is None:
        return Decision(ceil(seen.ongoing / settings.target), memory, "Prometheus is silent: Ray's own rule")
    late = _late(seen, settings)
    memory = _corrected(seen, memory, settings, late=late)
    need = seen.ongoing / (settings.target * memory.correction)
    if need > seen.wanted:
        most = max(seen.wanted + 1, int(seen.wanted * settings.growth))
        return Decision(min(ceil(need), most), memory, "more requests than the replicas are for")
    fewer = max(ceil(need / settings.keep), int(seen.wanted * settings.shrink))
    if fewer < seen.wanted:
        return Decision(fewer, memory, "fewer would do")
    return Decision(seen.wanted, memory, "as it should be")


def _late(seen: Seen, settings: Settings) -> bool:
    queued = seen.waiting is not None and seen.waiting > settings.waiting * seen.running
    return queued or (seen.in_time is not None and seen.in_time < settings.goal)


def _corrected(seen: Seen, memory: Memory, settings: Settings, *, late: bool) -> Memory:
    # Replicas that load will help, and what was late before they came is still in the figures for a while.
    if memory.at is None or seen.wanted > seen.running:
        return replace(memory, at=seen.now)
    if seen.now - memory.at < settings.settle_s:
        return memory
    need = seen.ongoing / (settings.target * memory.correction)
    if late and need <= seen.running:
        # It is late with this load on each replica, so the target lies below it.
        below = settings.keep * need / seen.running
        return _bounded(memory, settings, max(settings.tighten, below), seen.now)
    # Of an engine of which nothing is known, nothing is learned; nor of one that was not full.
    told = seen.waiting is not None and seen.in_time is not None
    if told and not late and need >= settings.keep * seen.running:
        return _bounded(memory, settings, settings.loosen, seen.now)
    return memory


def _bounded(memory: Memory, settings: Settings, factor: float, now: float) -> Memory:
    correction = min(max(memory.correction * factor, settings.least), settings.most)
    return replace(memory, correction=correction, at=now)
