"""One replica, as fast as the planner's performance model says."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heappop, heappush

from autoscaling.trace import SimulatedRequest
from rayhelm.facts import Catalog
from rayhelm.facts.engines import find_engine
from rayhelm.facts.gpu import GpuKind
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.versions import versions
from rayhelm.planner.memory.kv_cache import count_token_bytes
from rayhelm.planner.plan import ModelPlan
from rayhelm.planner.shape import ReplicaShape
from rayhelm.planner.speed.model import Speed, compute_speed
from rayhelm.planner.speed.replica import Load, Replica

__all__ = ["ReplicaModel", "SimulatedReplica"]


_USUAL_ANSWER = 256.0
"""Output tokens of the other requests, whose prompts delay a first token."""


@dataclass(frozen=True)
class ReplicaModel:
    """The performance of a replica: a model on a GPU."""

    model: Checkpoint
    gpu: GpuKind
    kv_bytes: float
    """Bytes of one token."""
    kv_tokens: int
    """Tokens in the cache of a replica."""
    sequences: int
    slower: float = 1.0
    """Factor on every duration: the error of the plan."""

    @classmethod
    def of_plan(cls, plan: ModelPlan, facts: Catalog, slower: float) -> "ReplicaModel":
        """Return the model of a replica on one GPU."""
        assert plan.tensor_parallel_size == plan.pipeline_parallel_size == 1
        model = facts.model(plan.source)
        constants, _ = find_engine(versions().vllm)
        kv_bytes = count_token_bytes(model, ReplicaShape(), "auto", constants)
        assert kv_bytes
        assert plan.kv_cache_tokens
        return cls(model, facts.gpu(plan.gpu), kv_bytes, plan.kv_cache_tokens, plan.max_num_seqs, slower)

    def step(self, running: float, context: float, reuse: float) -> float:
        """Return the seconds of a decode step; `reuse` is the number of prompt tokens computed per output token."""
        answer = context / (reuse + 0.5)
        return self._speed(max(reuse * answer, 1.0), max(answer, 1.0), max(running, 1.0)).tpot_s * self.slower

    def first_token(self, prompt: int, running: float) -> float:
        """Return the seconds from the start of a request in the engine to its first token."""
        return self._speed(float(prompt), _USUAL_ANSWER, max(running, 1.0)).ttft_s * self.slower

    @cached_property
    def _speed(self) -> Callable[[float, float, float], Speed]:
        """The speed by prompt, answer and requests in flight; between two events it is asked for again and again."""
        replica = Replica(self.model, (self.gpu,), kv_bytes_per_token=self.kv_bytes, max_num_seqs=1_000_000)

        @lru_cache(maxsize=1 << 16)
        def compute(prompt: float, answer: float, running: float) -> Speed:
            return compute_speed(replica, Load(prompt, answer, running))

        return compute


@dataclass(eq=False)
class SimulatedReplica:
    """A replica that serves from `ready` on. Each running request gets a token per step, so one clock is enough."""

    name: str
    ready: float
    machine: ReplicaModel
    waiting: deque[SimulatedRequest] = field(default_factory=deque)
    running: list[tuple[float, int, SimulatedRequest]] = field(default_factory=list)
    """A heap of (clock at which a request ends, number, request)."""
    clock: float = 0.0
    """Tokens that a request would have received since the start."""
    started: int = 0
    prompts: int = 0
    answers: int = 0
    reserved_tokens: float = 0.0
    """Tokens that are reserved in the cache."""

    @property
    def ongoing(self) -> int:
        return len(self.waiting) + len(self.running)

    def advance(self, now: float, seconds: float) -> None:
        """End complete requests, start those that fit, and compute."""
        while self.running and self.running[0][0] <= self.clock:
            self._count(heappop(self.running)[2], -1)
        while self.waiting and self._has_capacity(self.waiting[0]):
            self._start(self.waiting.popleft(), now)
        if self.running:
            self.clock += seconds / self._step(len(self.running))

    def _has_capacity(self, request: SimulatedRequest) -> bool:
        fits = self.reserved_tokens + request.prompt + request.answer / 2 <= self.machine.kv_tokens
        return not self.running or (len(self.running) < self.machine.sequences and fits)

    def _start(self, request: SimulatedRequest, now: float) -> None:
        self.started += 1
        self._count(request, 1)
        count = len(self.running) + 1
        step = self._step(count)
        begun = self.machine.first_token(request.prompt, count)
        request.first_token = now - request.at + begun
        heappush(self.running, (self.clock + begun / step + request.answer, self.started, request))

    def _step(self, count: int) -> float:
        return self.machine.step(count, self.reserved_tokens / count, self.prompts / max(self.answers, 1))

    def _count(self, request: SimulatedRequest, sign: int) -> None:
        self.prompts += sign * request.prompt
        self.answers += sign * request.answer
        self.reserved_tokens += sign * (request.prompt + request.answer / 2)
