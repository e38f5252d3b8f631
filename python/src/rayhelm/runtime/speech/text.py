"""Split text into pieces that a model speaks one after the other: the first one is heard while the rest is made."""

import re
from collections.abc import Iterator

__all__ = ["split_text"]

_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)(?<!\bMrs\.)\s+|\n+")
"""Space after the end of a sentence, which neither an initial nor `Dr.` is."""
_SPACE = re.compile(r"\s+")


def split_text(text: str, limit: int, *, least: int = 1) -> list[str]:
    """Split text into sentences of at most `limit` characters; shorter ones than `least` are joined.

    A longer sentence is split between words, and a longer word anywhere. Returns nothing for blanks.
    """
    parts = (part for sentence in _SENTENCE.split(text) for part in _split_sentence(sentence.strip(), limit))
    return list(_join(parts, least, limit))


def _split_sentence(sentence: str, limit: int) -> Iterator[str]:
    if len(sentence) <= limit:
        yield from filter(None, [sentence])
        return
    words = (word[start : start + limit] for word in _SPACE.split(sentence) for start in range(0, len(word), limit))
    yield from _join(words, limit, limit)


def _join(parts: Iterator[str], least: int, limit: int) -> Iterator[str]:
    joined = ""
    for part in parts:
        longer = f"{joined} {part}".strip()
        if joined and (len(joined) >= least or len(longer) > limit):
            yield joined
            joined = part
        else:
            joined = longer
    yield from filter(None, [joined])
