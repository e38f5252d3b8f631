"""Spellings of GPU names: accept those that mean one GPU, and name the candidates for the others."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from rayhelm.facts.gpu import GpuKind

__all__ = ["find_spelling", "list_candidates"]

_FILLERS = frozenset({"nvidia", "geforce", "tesla", "amd", "instinct", "intel", "generation"})
"""Words of vendors that say nothing about the board. `Quadro` is not one: `Quadro RTX 6000` is another board than the
RTX 6000 Ada."""


def find_spelling(name: str, gpus: Sequence[GpuKind]) -> GpuKind | None:
    """Return the GPU that has the name with other spaces, hyphens or words of the vendor; None if not exactly one."""
    wanted = _join(name)
    found = [gpu for gpu in gpus if any(_join(known) == wanted for known in _list_names(gpu))]
    return found[0] if wanted and len(found) == 1 else None


def list_candidates(name: str, gpus: Sequence[GpuKind]) -> list[GpuKind]:
    """Return the GPUs with names like this one, or that it can be short for, the nearest first."""
    wanted, words = _join(name), _list_words(name)
    if len(wanted) < 2:
        return []
    ranked = []
    for gpu in gpus:
        is_part = any(wanted in _join(known) for known in _list_names(gpu))
        if is_part or all(any(word in part for part in _split(gpu.id)) for word in words):
            near = max(SequenceMatcher(None, wanted, _join(known)).ratio() for known in _list_names(gpu))
            ranked.append((not is_part, -near, gpu.id, gpu))
    return [each[-1] for each in sorted(ranked, key=lambda each: each[:-1])]


def _list_names(gpu: GpuKind) -> list[str]:
    return [gpu.id, *gpu.aliases, *([gpu.product_label] if gpu.product_label else [])]


def _split(name: str) -> list[str]:
    return [word for word in re.findall("[a-z0-9]+", name.lower()) if word not in _FILLERS]


def _join(name: str) -> str:
    return "".join(_split(name))


def _list_words(name: str) -> list[str]:
    """Return the words of a name, with letters and the number behind them apart: `rtx6000` is `rtx` and `6000`.

    A single letter stays with its number, because it is part of many names."""
    parts = [re.sub(r"(?<=[a-z]{2})(?=\d)", " ", word) for word in _split(name)]
    return " ".join(parts).split()
