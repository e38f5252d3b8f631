"""One replica, as fast as the planner's performance model says."""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from autoscaling.trace import Request
from rayhelm.catalog import Catalog
from rayhelm.catalog.engines import find_engine
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.model import Checkpoint
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.placement.performance import estimate_decode_step_s, estimate_first_token_s, estimate_prefill_s
from rayhelm.planner.plan import ModelPlan
from rayhelm.versions import versions

__all__ = ["Machine", "Replica"]


@dataclass(frozen=True)
class Machine:
    """What all replicas are: a model on a card."""

    model: Checkpoint
    gpu: GpuKind
    kv_bytes: float
    """Of one token."""
    kv_tokens: int
    """Cache of a replica."""
    sequences: int
    slower: float = 1.0
    """Factor on every time: how far the plan is off."""

    @classmethod
    def of_plan(cls, plan: ModelPlan, known: Catalog, slower: float) -> "Machine":
        """A replica of one card."""
        assert plan.tensor_parallel_size == plan.pipeline_parallel_size == 1
        model = known.model(plan.source)
        constants, _ = find_engine(versions().vllm)
        cache = lay_out_kv_cache(model, 1, find_partition(model, 1, None), "auto", constants)
        assert cache
        assert plan.kv_cache_tokens
        return cls(model, known.gpu(plan.gpu), cache.token_bytes(0), plan.kv_cache_tokens, plan.max_num_seqs, slower)

    def step(self, running: float, context: float, reuse: float) -> float:
        """Seconds of one decode step; `reuse`: prompt tokens computed for each output token."""
        seconds = estimate_decode_step_s(self.model, (self.gpu,), 1, running, context, self.kv_bytes, reuse)
        assert seconds
        return seconds * self.slower

    def first_token(self, prompt: int, step: float, running: float) -> float:
        """Seconds from the engine's taking a request to its first token."""
        alone = estimate_prefill_s(self.model, (self.gpu,), 1, prompt, None)
        assert alone
        return estimate_first_token_s(alone * self.slower, step, running)


@dataclass(eq=False)
class Replica:
    """It serves from `ready` on. All that run get a token a step, so one clock of tokens suffices for them."""

    name: str
    ready: float
    machine: Machine
    waiting: deque[Request] = field(default_factory=deque)
    running: list[tuple[float, int, Request]] = field(default_factory=list)
    """A heap: the clock at which a request ends, a number, the request."""
    clock: float = 0.0
    """Tokens that a request running all the time would have got."""
    taken: int = 0
    prompts: int = 0
    answers: int = 0
    held: float = 0.0
    """Tokens for which there is room in the cache."""

    @property
    def ongoing(self) -> int:
        return len(self.waiting) + len(self.running)

    def pass_time(self, now: float, seconds: float) -> None:
        """End what ends, take what there is room for, compute."""
        while self.running and self.running[0][0] <= self.clock:
            self._count(heappop(self.running)[2], -1)
        while self.waiting and self._room(self.waiting[0]):
            self._take(self.waiting.popleft(), now)
        if self.running:
            self.clock += seconds / self._step(len(self.running))

    def _room(self, request: Request) -> bool:
        fits = self.held + request.prompt + request.answer / 2 <= self.machine.kv_tokens
        return not self.running or (len(self.running) < self.machine.sequences and fits)

    def _take(self, request: Request, now: float) -> None:
        self.taken += 1
        self._count(request, 1)
        count = len(self.running) + 1
        step = self._step(count)
        begun = self.machine.first_token(request.prompt, step, count)
        request.first_token = now - request.at + begun
        heappush(self.running, (self.clock + begun / step + request.answer, self.taken, request))

    def _step(self, count: int) -> float:
        return self.machine.step(count, self.held / count, self.prompts / max(self.answers, 1))

    def _count(self, request: Request, sign: int) -> None:
        self.prompts += sign * request.prompt
        self.answers += sign * request.answer
        self.held += sign * (request.prompt + request.answer / 2)
