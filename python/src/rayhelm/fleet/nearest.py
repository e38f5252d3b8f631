"""Names near a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "list_known", "nearest"]


def nearest(word: str, known: Iterable[str], most: int = 3, cutoff: float = 0.5) -> list[str]:
    """Known names that are like `word`, the nearest first; `cutoff` is the least similarity, 0 to 1."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[match] for match in get_close_matches(word.lower(), by_lower, n=most, cutoff=cutoff)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of a message: the near names, else all names if they are few."""
    known = list(known)
    if near := nearest(word, known):
        return f"did you mean {' or '.join(f'`{name}`' for name in near)}?"
    return list_known(known)


def list_known(known: Iterable[str]) -> str:
    """All names, if they are few."""
    known = list(known)
    return f"known: {', '.join(known)}" if 0 < len(known) <= 12 else ""
