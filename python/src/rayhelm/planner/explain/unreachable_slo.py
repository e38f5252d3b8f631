"""Problems of models whose SLO is missed by a request that is alone on a replica: more replicas would not help."""

from collections.abc import Sequence
from math import ceil

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.models import Slo
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["Missed", "report_unreachable_slo"]

Missed = tuple[ResolvedModelSpec, Sequence[Candidate]]
_MEANINGS = {"ttft": "time to first token", "tpot": "time per output token"}


def report_unreachable_slo(missed: Sequence[Missed]) -> list[Problem]:
    """Return one problem for each objective that the best split misses, with the figure that it reaches.

    `missed`: a model, or its parts on several pools, each with all splits that fit; all of them miss an objective.
    """
    objective = missed[0][0].declared.slo
    best = [(spec, min(found, key=lambda each: _compute_excess(each, objective))) for spec, found in missed]
    problems = []
    for name in _MEANINGS:
        late = [each for each in best if name in each[1].capacity.misses_alone(objective)]
        if not late:
            continue
        late.sort(key=lambda each: -_get_alone(each[1], name))
        (slowest, candidate), *others = late
        message = _describe(slowest, candidate, name)
        for _, other in others:
            message += f"; in pool `{other.split.inventory.name}` {_write(_get_alone(other, name))}"
        path = (*slowest.path, "slo", name)
        problems.append(problem_at(path, message, _fix(candidate, name)))
    return problems


def _compute_excess(candidate: Candidate, objective: Slo) -> float:
    """Return the largest ratio of a figure to its objective."""
    wanted = {"ttft": objective.ttft, "tpot": objective.tpot}
    return max(_get_alone(candidate, name) / (wanted[name] or 1) for name in candidate.capacity.misses_alone(objective))


def _describe(model_spec: ResolvedModelSpec, best: Candidate, name: str) -> str:
    wanted = {"ttft": model_spec.declared.slo.ttft, "tpot": model_spec.declared.slo.tpot}[name]
    split, lengths = best.split, model_spec.lengths
    share = "" if best.share == 1 else f" with {best.share:g} of the GPU"
    spec = model_spec.declared
    pins = {
        "pools" if spec.pools else "pool": spec.pool,
        "parallelism": spec.parallelism,
        "gpuFraction": spec.gpu_fraction,
    }
    limits = ", ".join(f"`{key}`" for key, pin in pins.items() if pin is not None)
    within = f" that {limits} allow{'s' if limits.count('`') == 2 else ''}" if limits else ""
    return (
        f"a {_MEANINGS[name]} of {_show(wanted or 0)} is not reached, even by one request alone on a replica. The best"
        f" split{within}, {split.shape} on {split.gpu_name} in pool `{split.inventory.name}`{share},"
        f" reaches {_write(_get_alone(best, name))} at the high end of its 90 % interval"
        f"{_describe_middle(best, name)}, with {lengths.prompt} input tokens"
    )


def _describe_middle(best: Candidate, name: str) -> str:
    capacity = best.capacity
    middle = capacity.alone_ttft_mid_s if name == "ttft" else capacity.alone_tpot_mid_s
    return f", whose middle is {_write(middle)}" if middle else ""


def _fix(best: Candidate, name: str) -> Fix:
    why = "what this split reaches; or faster GPUs, or a smaller or quantized model"
    return Fix(value=_write(_get_alone(best, name)), why=why)


def _get_alone(candidate: Candidate, name: str) -> float:
    return (candidate.capacity.alone_ttft_s if name == "ttft" else candidate.capacity.alone_tpot_s) or 0.0


def _show(seconds: float) -> str:
    """Write a duration as a fleet file may have it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:g}us"
    return f"{seconds * 1e3:g}ms" if seconds < 10 else f"{seconds:g}s"


def _write(seconds: float) -> str:
    """Write a duration of the fleet file, rounded up so that the split reaches it."""
    milliseconds = seconds * 1e3
    if milliseconds < 10:
        return f"{ceil(milliseconds * 10 - 1e-9) / 10:g}ms"
    return f"{ceil(milliseconds - 1e-9)}ms" if milliseconds < 10_000 else f"{ceil(seconds - 1e-9)}s"
