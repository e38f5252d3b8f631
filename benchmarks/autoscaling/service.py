"""The deployment: a router sends arrivals to replicas, and a policy sets the number of replicas."""

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autoscaling.engine import ReplicaModel, SimulatedReplica
from autoscaling.trace import SimulatedRequest

__all__ = ["DelayedMetrics", "DeploymentTerms", "SimulatedDeployment", "SimulationResult"]

TICK_S = 0.25
"""Step of the simulation."""
DECIDE_S = 1.0
"""Seconds between decisions. Serve decides ten times per second, but its delays are at least 15 s."""
REPORT_S = 10.0
"""Seconds between two reports of a replica to Serve's controller and to its metrics page."""
SCRAPE_S = 15.0
"""Seconds between two scrapes."""


@dataclass(frozen=True)
class DeploymentTerms:
    """Parameters of the deployment, from the plan."""

    min_replicas: int
    max_replicas: int
    initial: int
    load_s: float
    look_back_s: float
    max_ongoing: int
    ttft_s: float


@dataclass(frozen=True)
class DelayedMetrics:
    """Metrics as late as a policy would receive them."""

    now: float
    ongoing: float
    """Requests in flight, averaged over the look-back."""
    running_replicas: list[str]
    """Names of the running replicas."""
    target_replicas: int
    waiting: dict[str, float]
    """By replica: mean of the scrapes of the last minute."""
    first_tokens: dict[str, list[float]]
    """By replica: times to first token that Prometheus counted in the last two minutes, in seconds."""


Decider = Callable[[DelayedMetrics], int]


@dataclass
class SimulationResult:
    gpu_seconds: float
    """GPU seconds, including those of replicas that load or drain."""
    requests: list[SimulatedRequest]
    started: int
    """Replicas that were started after the initial ones."""

    def in_time(self, ttft_s: float) -> float:
        """Share of all requests in time; a request without a token is late."""
        good = sum(one.first_token is not None and one.first_token <= ttft_s for one in self.requests)
        return good / len(self.requests)


@dataclass
class SimulatedDeployment:
    machine: ReplicaModel
    terms: DeploymentTerms
    seed: int
    replicas: list[SimulatedReplica] = field(default_factory=list)
    ending: list[SimulatedReplica] = field(default_factory=list)
    queue: deque[SimulatedRequest] = field(default_factory=deque)
    """Requests that wait at the router because every replica is full."""
    reports: deque[tuple[float, float]] = field(default_factory=deque)
    """Time, and requests in flight."""
    pages: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    """Time of a scrape, and waiting requests by replica."""
    tokens: deque[tuple[float, str, float]] = field(default_factory=deque)
    """Time at which Prometheus has counted it, replica, time to first token."""
    started: int = 0

    def run(self, arrivals: list[SimulatedRequest], seconds: float, decide: Decider) -> SimulationResult:
        draw = random.Random(self.seed)
        left, gpu_seconds, steps = deque(arrivals), 0.0, int(seconds / TICK_S)
        self.replicas = [self._replica(ready=0.0) for _ in range(self.terms.initial)]
        for step in range(steps):
            now = step * TICK_S
            while left and left[0].at <= now:
                self.queue.append(left.popleft())
            self._route(now, draw)
            for replica in (*self.replicas, *self.ending):
                if replica.ready <= now:
                    self._compute(replica, now)
            self.ending = [replica for replica in self.ending if replica.ongoing]
            gpu_seconds += TICK_S * (len(self.replicas) + len(self.ending))
            self._record(now)
            if now % DECIDE_S == 0:
                self._scale(decide(self._delayed_metrics(now)), now)
        return SimulationResult(gpu_seconds, arrivals, self.started - self.terms.initial)

    def _compute(self, replica: SimulatedReplica, now: float) -> None:
        taken, before = replica.started, list(replica.waiting)
        replica.advance(now, TICK_S)
        for request in before[: replica.started - taken]:
            assert request.first_token is not None
            came = request.at + request.first_token
            page = REPORT_S * (came // REPORT_S + 1)
            self.tokens.append((SCRAPE_S * (page // SCRAPE_S + 1), replica.name, request.first_token))

    def _route(self, now: float, draw: random.Random) -> None:
        """Choose the less busy of two replicas, as Serve's router does; requests wait if all are full."""
        while self.queue:
            open_ = [one for one in self.replicas if one.ready <= now and one.ongoing < self.terms.max_ongoing]
            if not open_:
                return
            two = draw.sample(open_, min(2, len(open_)))
            min(two, key=lambda replica: replica.ongoing).waiting.append(self.queue.popleft())

    def _record(self, now: float) -> None:
        if now % REPORT_S == 0:
            self.reports.append((now, len(self.queue) + sum(one.ongoing for one in (*self.replicas, *self.ending))))
        if now % SCRAPE_S == 0:
            self.pages.append((now, {one.name: len(one.waiting) for one in self.replicas if one.ready <= now}))

    def _delayed_metrics(self, now: float) -> DelayedMetrics:
        while self.reports and self.reports[0][0] < now - self.terms.look_back_s:
            self.reports.popleft()
        while self.pages and self.pages[0][0] < now - 60:
            self.pages.popleft()
        while self.tokens and self.tokens[0][0] < now - 120:
            self.tokens.popleft()
        return DelayedMetrics(
            now=now,
            ongoing=sum(count for _, count in self.reports) / max(len(self.reports), 1),
            running_replicas=[one.name for one in self.replicas if one.ready <= now],
            target_replicas=len(self.replicas),
            waiting=_means(page for _, page in self.pages),
            first_tokens=_by_replica((name, token) for at, name, token in self.tokens if at <= now),
        )

    def _scale(self, wanted: int, now: float) -> None:
        """Remove loading replicas first, then those with the fewest requests, which finish them."""
        wanted = min(max(wanted, self.terms.min_replicas), self.terms.max_replicas)
        while len(self.replicas) < wanted:
            self.replicas.append(self._replica(ready=now + self.terms.load_s))
        if len(self.replicas) > wanted:
            self.replicas.sort(key=lambda one: (one.ready > now, -one.ongoing))
            self.ending += [one for one in self.replicas[wanted:] if one.ready <= now]
            self.replicas = self.replicas[:wanted]

    def _replica(self, ready: float) -> SimulatedReplica:
        self.started += 1
        return SimulatedReplica(f"r{self.started}", ready, self.machine)


def _means(pages: Iterable[dict[str, int]]) -> dict[str, float]:
    seen: dict[str, list[int]] = {}
    for page in pages:
        for name, count in page.items():
            seen.setdefault(name, []).append(count)
    return {name: sum(counts) / len(counts) for name, counts in seen.items()}


def _by_replica(tokens: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, token in tokens:
        found.setdefault(name, []).append(token)
    return found
