"""The speed model: time per output token and time to first token from the terms, without measured rows."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from rayhelm.facts.gpu import GpuKind
from rayhelm.planner.speed.assumptions import load_assumptions
from rayhelm.planner.speed.coefficients import SpeedCoefficients, load_coefficients
from rayhelm.planner.speed.links import find_host_link
from rayhelm.planner.speed.replica import Load, Replica, StageLink
from rayhelm.planner.speed.terms import (
    StageBatch,
    count_decode_terms,
    count_experts_hit,
    count_prefill_terms,
    count_units,
    find_least_step_s,
    list_decode_rates,
)

__all__ = [
    "Speed",
    "SpeedModel",
    "compute_speed",
    "count_running",
    "find_least_tpot_s",
    "list_first_token_terms",
    "list_pass_terms",
    "list_step_terms",
]

_BYTES = 2
_NEARLY_FULL = 0.9
"""Part of the room for requests from which some of them wait, because their lengths differ."""
_WORK_TERMS = ("prefill_compute", "expert_compute_native", "expert_compute_converted", "attention", "all_reduce_bytes")
"""Terms of the time to first token that occupy the GPU."""
_TOKEN_TERMS = (*_WORK_TERMS, "token")
"""Terms that grow with the tokens of the prompt. The CPU does the work of `token` beside the GPU."""


class Speed(NamedTuple):
    """Speed of a replica group under a load."""

    tpot_s: float
    ttft_s: float
    running: float
    """Requests that run at a time, in all ranks; the others wait."""
    limit: str
    """What limits them: `max_num_seqs`, `KV cache`; empty if nearly all fit."""
    is_prefill_bound: bool = False
    """The prompts need all that a step computes: requests wait for their prompt."""
    parts: Mapping[str, float] = MappingProxyType({})
    """Seconds of a decode step by term."""
    link_use: float = 0.0
    """Part of the rate of the link between stages that the load needs."""

    @property
    def is_link_overfull(self) -> bool:
        return self.link_use > load_assumptions().link_use_limit


def compute_speed(replica: Replica, load: Load, fitted: SpeedCoefficients | None = None) -> Speed:
    """Compute the speed, with the parts of a step. The GPUs need known figures (`list_missing_figures`)."""
    model = SpeedModel(replica, load, fitted or load_coefficients())
    speed = model.at(load.concurrency)
    return speed._replace(parts=model.list_parts(speed))


class SpeedModel:
    """The speed of a replica for requests of one length. What does not depend on the requests in flight is computed
    once: the planner asks for many numbers of them."""

    def __init__(self, replica: Replica, load: Load, fitted: SpeedCoefficients) -> None:
        """`load`: its lengths are used, and not its concurrency."""
        self._replica, self._load, self._fitted = replica, load, fitted
        first = list_first_token_terms(replica, load, 0.0, fitted)
        self._work_s = sum(fitted.ttft[name] * first[name] for name in _WORK_TERMS)
        self._token_s = fitted.ttft["token"] * first["token"]
        self._pass_s = _weigh(fitted.ttft, first) - self._work_s - self._token_s
        self._drafts = replica.speculation.tokens if replica.speculation else 0
        self._per_step = replica.speculation.tokens_per_step if replica.speculation else 1.0
        self._stages = [_StageTime(replica, load, gpu, count, fitted) for gpu, count in _count_alike(replica.gpus)]
        self._draft_factor = 1 + self._drafts * load_assumptions().draft_share
        self._most_running = _find_most_running(replica, load)
        self._most_decoding = _count_most_decoding(replica, load)
        self._new_tokens = load.input_tokens - load.cached_tokens
        self._hops = _list_hops(replica)
        self._full_step_s, self._prompt_s = self._compute_full_step()

    def at(self, concurrency: float) -> Speed:
        """Return the speed with so many requests in flight, without the parts of a step."""
        load, ranks = self._load, self._replica.shape.dp
        running, limit = _limit_running(concurrency / ranks, *self._most_running)
        step, link_use = self._compute_step(running)
        tpot = step / self._per_step
        turn = self._work_s + self._pass_s + load.output_tokens * tpot
        wait = max(0.0, concurrency / ranks / running - 1) * turn
        ahead, passes = _count_ahead(load, min(running, self._most_decoding))
        overhead = self._pass_s + self._fitted.ttft["step"] * tpot
        first = self._work_s * (1 + ahead) + overhead * (1 + passes) + self._token_s
        hops = self._compute_hops_s(self._new_tokens, link_use)
        # A replica answers no faster than it computes prompts: what is not spent on decoding is spent on waiting.
        least = concurrency / ranks * self._prompt_s - (load.output_tokens - 1) * self._full_step_s / self._per_step
        return Speed(
            tpot_s=tpot,
            ttft_s=max(first + hops + wait, least),
            running=running * ranks,
            limit=limit,
            is_prefill_bound=running > self._most_decoding or least > first + hops + wait,
            link_use=link_use,
        )

    def list_parts(self, speed: Speed) -> dict[str, float]:
        """Return the seconds of a decode step by term."""
        replica, fitted = self._replica, self._fitted
        batch = _build_batch(replica, self._load, speed.running / replica.shape.dp)
        parts: dict[str, float] = {}
        for gpu, stages in _count_alike(replica.gpus):
            for name, value in _list_stage_terms(replica, gpu, batch, fitted).items():
                parts[name] = parts.get(name, 0.0) + stages * fitted.tpot[name] * value
        if self._drafts:
            parts["drafts"] = sum(parts.values()) * self._drafts * load_assumptions().draft_share
        if replica.shape.pp > 1:
            parts["stage_link"] = self._compute_hops_s(batch.tokens + batch.prefill_tokens, speed.link_use)
        return parts

    def _compute_step(self, running: float) -> tuple[float, float]:
        """Return the seconds of a decode step over all stages, and the use of the link between them."""
        sequences, others = self._count_sequences(running)
        seconds = self._list_stage_seconds(sequences, others)
        if not self._hops:
            return seconds[0] * self._draft_factor, 0.0
        step = sum(stage.count * each for stage, each in zip(self._stages, seconds, strict=True)) * self._draft_factor
        moved = sequences * (self._drafts + 1) + others * self._new_tokens
        use = _compute_link_use(self._replica, moved, max(seconds))
        return step + self._compute_hops_s(moved, use), use

    def _count_sequences(self, running: float) -> tuple[float, float]:
        return _divide_over_stages(self._replica, self._load, min(running, self._most_decoding), self._per_step)

    def _compute_hops_s(self, tokens: float, use: float) -> float:
        """Return the seconds of the transfers between stages. They queue if the link is more than half full."""
        if not self._hops:
            return 0.0
        queue = 1 / (1 - min(use, 0.95)) if use > 0.5 else 1.0
        moved = tokens * self._replica.model.hidden * _BYTES
        return sum(count * (link.latency_s + moved / (link.gb_per_s * 1e9) * queue) for link, count in self._hops)

    def _list_stage_seconds(self, sequences: float, others: float) -> list[float]:
        """Return the seconds of a step on one stage of each kind."""
        hit = count_experts_hit(self._replica, sequences * (self._drafts + 1))
        return [
            stage.fixed + sequences * stage.sequence + others * stage.other + hit * stage.expert
            for stage in self._stages
        ]

    def _compute_full_step(self) -> tuple[float, float]:
        """Return the seconds of a step that is full of prompts, and those per prompt; 0 if all of it is cached."""
        if self._most_decoding == inf:
            return 0.0, 0.0
        sequences, others = _count_sequences(self._replica, self._load, self._most_decoding)
        step, _ = self._compute_step(self._most_decoding)
        return step, max(self._list_stage_seconds(sequences, others)) / others


class _StageTime:
    """Seconds of a decode step on neighboring stages with the same GPU, by what the step has more or less of."""

    def __init__(self, replica: Replica, load: Load, gpu: GpuKind, count: int, fitted: SpeedCoefficients) -> None:
        rates = _list_weighted_rates(replica, gpu, fitted)
        self.count = count
        self.fixed, self.expert = rates["step"], rates["experts_hit"]
        self.sequence, self.other = (
            sum(rate * units[unit] for unit, rate in rates.items() if unit not in ("step", "experts_hit"))
            for units in (count_units(replica, _batch_of(replica, load, *each)) for each in ((1.0, 0.0), (0.0, 1.0)))
        )


def _list_weighted_rates(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> dict[str, float]:
    """Return the seconds of a decode step by unit. They do not depend on the load."""
    known, rates = replica.known_weights.get(gpu.id, (None, {}))
    if known is fitted:
        return rates
    factor = _scale(replica, gpu, fitted)
    rates = {
        unit: factor * sum(fitted.tpot[name] * rate for name, rate in of_unit.items())
        for unit, of_unit in list_decode_rates(replica, gpu, fitted).items()
    }
    replica.known_weights[gpu.id] = fitted, rates
    return rates


def list_pass_terms(replica: Replica, load: Load, fitted: SpeedCoefficients | None = None) -> tuple[float, float]:
    """Return the seconds of one forward pass over the input: those that grow with its tokens, and the overhead that a
    batch shares."""
    fitted = fitted or load_coefficients()
    terms = list_first_token_terms(replica, load, 0.0, fitted)
    work = sum(fitted.ttft[name] * terms[name] for name in _TOKEN_TERMS)
    return work, _weigh(fitted.ttft, terms) - work


def count_running(replica: Replica, load: Load) -> tuple[float, str]:
    """Return the requests that one rank runs at a time, and what limits them; empty if nearly all fit."""
    return _limit_running(load.concurrency / replica.shape.dp, *_find_most_running(replica, load))


def _find_most_running(replica: Replica, load: Load) -> tuple[float, str]:
    most = float(replica.max_num_seqs)
    if replica.kv_tokens and (held := replica.kv_tokens / (load.input_tokens + load.output_tokens / 2)) < most:
        return held, "KV cache"
    return most, "max_num_seqs"


def _limit_running(concurrency: float, most: float, limit: str) -> tuple[float, str]:
    wanted = max(1.0, concurrency)
    return max(1.0, min(wanted, most)), limit if wanted > _NEARLY_FULL * most else ""


def find_least_tpot_s(replica: Replica, load: Load, speed: Speed) -> float:
    """Return the time per output token that no software can be faster than, because the memory of the GPUs is not."""
    batch = _build_batch(replica, load, speed.running / replica.shape.dp)
    step = sum(count * find_least_step_s(replica, gpu, batch) for gpu, count in _count_alike(replica.gpus))
    return step / (replica.speculation.tokens_per_step if replica.speculation else 1.0)


def list_step_terms(replica: Replica, load: Load, fitted: SpeedCoefficients) -> dict[str, float]:
    """Return the terms of a decode step on a single stage, before the coefficients."""
    running, _ = count_running(replica, load)
    return _list_stage_terms(replica, replica.gpus[0], _build_batch(replica, load, running), fitted)


def _build_batch(replica: Replica, load: Load, running: float) -> StageBatch:
    """Return what a stage computes in a step."""
    return _batch_of(replica, load, *_count_sequences(replica, load, running))


def _count_sequences(replica: Replica, load: Load, running: float) -> tuple[float, float]:
    """Return the sequences that a stage decodes in a step, and the prompts that it computes beside them. Stages work on
    different requests at the same time."""
    per_step = replica.speculation.tokens_per_step if replica.speculation else 1.0
    return _divide_over_stages(replica, load, min(running, _count_most_decoding(replica, load)), per_step)


def _divide_over_stages(replica: Replica, load: Load, running: float, per_step: float) -> tuple[float, float]:
    sequences = max(running / replica.shape.pp, min(running, 1.0))
    return sequences, max(running - 1, 0.0) / replica.shape.pp * per_step / load.output_tokens


def _count_most_decoding(replica: Replica, load: Load) -> float:
    """Return the requests that decode at a time if each step computes as many prompt tokens as it may. Others wait for
    their prompt."""
    new = load.input_tokens - load.cached_tokens
    per_step = replica.speculation.tokens_per_step if replica.speculation else 1.0
    return 1 + replica.shape.pp * load.output_tokens * replica.batched_tokens / (new * per_step) if new > 0 else inf


def _batch_of(replica: Replica, load: Load, sequences: float, others: float) -> StageBatch:
    drafts = replica.speculation.tokens if replica.speculation else 0
    full, windowed = _count_pairs(replica, load)
    return StageBatch(
        sequences=sequences,
        context=load.input_tokens + load.output_tokens / 2,
        tokens=sequences * (drafts + 1),
        prefill_tokens=others * (load.input_tokens - load.cached_tokens),
        prefill_pairs=others * full,
        prefill_window_pairs=others * windowed,
        prompts=others,
    )


def _list_stage_terms(replica: Replica, gpu: GpuKind, batch: StageBatch, fitted: SpeedCoefficients) -> dict[str, float]:
    factor = _scale(replica, gpu, fitted)
    return {name: value * factor for name, value in count_decode_terms(replica, gpu, batch, fitted).items()}


def _scale(replica: Replica, gpu: GpuKind, fitted: SpeedCoefficients) -> float:
    return fitted.vendor_factor.get(gpu.vendor, 1.0) / replica.share


def _count_pairs(replica: Replica, load: Load) -> tuple[float, float]:
    """Return the pairs of tokens of which one prompt computes the attention: in full and in windowed layers."""
    new, tokens = load.input_tokens - load.cached_tokens, load.input_tokens
    window = min(tokens, replica.model.attention.local_tokens or tokens)
    return new * (tokens - new / 2), 0.75 * window * new


def list_first_token_terms(
    replica: Replica, load: Load, tpot: float, fitted: SpeedCoefficients, running: float = 1.0
) -> dict[str, float]:
    """Return the terms of the time to first token, before the coefficients. `running`: requests in flight, whose
    prompts lengthen them."""
    full, windowed = _count_pairs(replica, load)
    batch = StageBatch(0.0, 0.0, 0.0, load.input_tokens - load.cached_tokens, full, windowed, 1.0)
    terms = {"step": tpot, "request": 1e-2, "token": load.input_tokens * 1e-6}
    for gpu, stages in _count_alike(replica.gpus):
        factor = stages * _scale(replica, gpu, fitted)
        for name, value in count_prefill_terms(replica, gpu, batch, fitted).items():
            terms[name] = terms.get(name, 0.0) + value * factor
    ahead, passes = _count_ahead(load, running)
    growth = dict.fromkeys(_WORK_TERMS, 1 + ahead) | {"token": 1.0}
    return {name: value * growth.get(name, 1 + passes) for name, value in terms.items()}


def _count_ahead(load: Load, running: float) -> tuple[float, float]:
    """Return how many prompts of other requests are computed before that of a request, and in how many forward passes:
    short prompts share one."""
    assumed = load_assumptions()
    ahead = assumed.ttft_ahead * max(running - 1, 0.0)
    return ahead, ahead * min(1.0, (load.input_tokens - load.cached_tokens) / assumed.ttft_pass_tokens)


def _count_alike(gpus: Sequence[GpuKind]) -> list[tuple[GpuKind, int]]:
    """Return neighboring stages with the same GPU, which compute the same, and their number."""
    return [(gpu, len(list(group))) for gpu, group in groupby(gpus)]


def _weigh(coefficients: Mapping[str, float], terms: Mapping[str, float]) -> float:
    return sum(coefficients[name] * value for name, value in terms.items())


def _compute_link_use(replica: Replica, tokens: float, stage_s: float) -> float:
    """Return the part of the link's rate that the activations of a step need, if it delayed nothing."""
    if replica.shape.pp == 1:
        return 0.0
    link = _find_link(replica)
    return tokens * replica.model.hidden * _BYTES / (link.gb_per_s * 1e9) / stage_s


def _list_hops(replica: Replica) -> list[tuple[StageLink, int]]:
    """Return the links between stages, and the transfers over each."""
    hops = replica.shape.pp - 1
    if not hops:
        return []
    slow = (hops if replica.network_hops is None else replica.network_hops) if replica.link else 0
    return [(_find_link(replica), slow), (find_host_link(replica.gpus[0]), hops - slow)]


def _find_link(replica: Replica) -> StageLink:
    return replica.link or find_host_link(replica.gpus[0])
