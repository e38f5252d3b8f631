"""Explain candidates that the improvement of a placement chose: for which models, and what it is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import Choice, rank
from rayhelm.planner.placement.improve import Move

__all__ = ["explain_moves"]

_FAULTS = (
    "meet the SLO by the estimate",
    "start with certainty",
    "have the requested context",
    "run on official vLLM builds",
    "keep CUDA graphs",
)
"""By position in the rank: what more models do."""
_MOST_NAMED = 3


def explain_moves(
    first: Mapping[str, Choice], candidates: Mapping[str, Candidate | None], moves: Sequence[Move]
) -> dict[str, Choice]:
    """Return the choices of all models. Those that differ from the first placement say why."""
    choices = dict(first)
    changed = [name for name, now in candidates.items() if now and _is_other(first.get(name), now)]
    for name in changed:
        now = candidates[name]
        assert now is not None
        others = [each for each in _list_together(name, moves) if each in changed and each != name]
        text = _describe(name, others, first, candidates)
        before = first.get(name)
        if before:
            choices[name] = replace(before, candidate=now, runner_up=before.candidate, cramped=None, moved=text)
        else:
            choices[name] = Choice(now, None, "", None, moved=text)
    return choices


def _is_other(before: Choice | None, now: Candidate) -> bool:
    return before is None or before.candidate is not now


def _list_together(name: str, moves: Sequence[Move]) -> list[str]:
    """Return the models that moved in the same changes, directly or through others."""
    found, new = [name], [name]
    while new:
        one = new.pop()
        for move in moves:
            if one in move.models:
                added = [each for each in move.models if each not in found]
                found += added
                new += added
    return found


def _describe(
    name: str, others: Sequence[str], first: Mapping[str, Choice], candidates: Mapping[str, Candidate | None]
) -> str:
    names = [f"`{each}`" for each in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        names.append(f"{len(others) - _MOST_NAMED} more")
    together = f"chosen together with {' and '.join(names)}" if names else "chosen after other models had moved"
    group = [name, *others]
    alone = first.get(name)
    if any(each not in first for each in group):
        why = "placed one by one, they would not all have room" if others else "placed one by one, it has no room"
    else:
        why = _compare([first[each].candidate for each in group], [candidates[each] for each in group])
    if alone:
        split = alone.candidate.split
        why += f"; one by one, `{name}` would be on pool `{split.inventory.name}`, {split.shape}"
    return f"{together}: {why}"


def _compare(before: Sequence[Candidate], after: Sequence[Candidate | None]) -> str:
    now = [each for each in after if each]
    for index, what in enumerate(_FAULTS):
        old, new = (sum(rank(each, True)[index] for each in group) for group in (before, now))
        if new < old:
            return f"more of them {what}"
    old, new = (sum(each.price_per_hour or 0.0 for each in group) for group in (before, now))
    if new < old and all(each.price_per_hour is not None for each in (*before, *now)):
        return f"{new:.2f} USD/h for all of them, in place of {old:.2f}"
    old, new = (sum(each.split.memory_gib * each.gpus for each in group) for group in (before, now))
    return "fewer GPUs are held, because models of one service share them" if new >= old else "less GPU memory is used"
