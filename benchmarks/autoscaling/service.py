"""The deployment: arrivals go to replicas, and a decider says how many of them there are."""

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autoscaling.engine import Machine, Replica
from autoscaling.trace import Request

__all__ = ["Look", "Outcome", "Service", "Terms"]

TICK_S = 0.25
"""Of the simulation."""
DECIDE_S = 1.0
"""Serve decides ten times a second; its delays are no shorter than 15 s."""
REPORT_S = 10.0
"""Between two reports of a replica, to Serve's controller and to Prometheus' page alike."""
SCRAPE_S = 15.0
"""Between two looks of Prometheus."""


@dataclass(frozen=True)
class Terms:
    """What the plan says of the deployment."""

    least: int
    most: int
    initial: int
    load_s: float
    look_back_s: float
    max_ongoing: int
    ttft_s: float


@dataclass(frozen=True)
class Look:
    """What a decider sees, as late as it would see it."""

    now: float
    ongoing: float
    """Requests in flight, averaged over the look-back."""
    serving: list[str]
    """Names of the replicas that serve."""
    wanted: int
    waiting: dict[str, float]
    """By replica: mean of the last minute's scrapes."""
    first_tokens: dict[str, list[float]]
    """By replica: those that Prometheus counted in the last two minutes, seconds."""


Decider = Callable[[Look], int]


@dataclass
class Outcome:
    card_s: float
    """Seconds that cards were held, loads and endings among them."""
    requests: list[Request]
    started: int
    """Replicas that were loaded after the first ones."""

    def in_time(self, ttft_s: float) -> float:
        """Share of all requests; one that never got a token was late."""
        good = sum(one.first_token is not None and one.first_token <= ttft_s for one in self.requests)
        return good / len(self.requests)


@dataclass
class Service:
    machine: Machine
    terms: Terms
    seed: int
    replicas: list[Replica] = field(default_factory=list)
    ending: list[Replica] = field(default_factory=list)
    queue: deque[Request] = field(default_factory=deque)
    """Before the router: no replica takes more."""
    reports: deque[tuple[float, float]] = field(default_factory=deque)
    """When, and requests in flight."""
    pages: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    """When Prometheus looked, and what waited by replica."""
    tokens: deque[tuple[float, str, float]] = field(default_factory=deque)
    """When Prometheus will have counted it, replica, first token."""
    started: int = 0

    def run(self, arrivals: list[Request], seconds: float, decide: Decider) -> Outcome:
        draw = random.Random(self.seed)
        left, card_s, steps = deque(arrivals), 0.0, int(seconds / TICK_S)
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
            card_s += TICK_S * (len(self.replicas) + len(self.ending))
            self._note(now)
            if now % DECIDE_S == 0:
                self._become(decide(self._look(now)), now)
        return Outcome(card_s, arrivals, self.started - self.terms.initial)

    def _compute(self, replica: Replica, now: float) -> None:
        taken, before = replica.taken, list(replica.waiting)
        replica.pass_time(now, TICK_S)
        for request in before[: replica.taken - taken]:
            assert request.first_token is not None
            came = request.at + request.first_token
            page = REPORT_S * (came // REPORT_S + 1)
            self.tokens.append((SCRAPE_S * (page // SCRAPE_S + 1), replica.name, request.first_token))

    def _route(self, now: float, draw: random.Random) -> None:
        """The better of two, as Serve's router chooses; what no replica takes waits before it."""
        while self.queue:
            open_ = [one for one in self.replicas if one.ready <= now and one.ongoing < self.terms.max_ongoing]
            if not open_:
                return
            two = draw.sample(open_, min(2, len(open_)))
            min(two, key=lambda replica: replica.ongoing).waiting.append(self.queue.popleft())

    def _note(self, now: float) -> None:
        if now % REPORT_S == 0:
            self.reports.append((now, len(self.queue) + sum(one.ongoing for one in (*self.replicas, *self.ending))))
        if now % SCRAPE_S == 0:
            self.pages.append((now, {one.name: len(one.waiting) for one in self.replicas if one.ready <= now}))

    def _look(self, now: float) -> Look:
        while self.reports and self.reports[0][0] < now - self.terms.look_back_s:
            self.reports.popleft()
        while self.pages and self.pages[0][0] < now - 60:
            self.pages.popleft()
        while self.tokens and self.tokens[0][0] < now - 120:
            self.tokens.popleft()
        return Look(
            now=now,
            ongoing=sum(count for _, count in self.reports) / max(len(self.reports), 1),
            serving=[one.name for one in self.replicas if one.ready <= now],
            wanted=len(self.replicas),
            waiting=_means(page for _, page in self.pages),
            first_tokens=_by_replica((name, token) for at, name, token in self.tokens if at <= now),
        )

    def _become(self, wanted: int, now: float) -> None:
        """Replicas that still load are given up first, then those with the fewest requests, which end them."""
        wanted = min(max(wanted, self.terms.least), self.terms.most)
        while len(self.replicas) < wanted:
            self.replicas.append(self._replica(ready=now + self.terms.load_s))
        if len(self.replicas) > wanted:
            self.replicas.sort(key=lambda one: (one.ready > now, -one.ongoing))
            self.ending += [one for one in self.replicas[wanted:] if one.ready <= now]
            self.replicas = self.replicas[:wanted]

    def _replica(self, ready: float) -> Replica:
        self.started += 1
        return Replica(f"r{self.started}", ready, self.machine)


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
