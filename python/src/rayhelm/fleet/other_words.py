"""Words that people write for keys and values, read from `data/other_words.yaml`."""

import re
from functools import cache
from importlib.resources import files

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["find_value", "list_keys", "name_rate"]


class _OtherWords(Closed):
    keys: dict[str, tuple[str, ...]]
    rates: dict[str, str]
    values: dict[str, str]


def list_keys(word: str) -> tuple[str, ...]:
    """Return the paths of the keys that may be meant, dotted, from the record that has the word."""
    # An engine argument beside the keys of a model: `quantization`, `kvCacheDtype`, `max-num-seqs`.
    argument = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", word).lower()
    return (*_load().keys.get(_normalize(word), ()), f"engine.{argument}")


def find_value(word: str) -> str | None:
    return _load().values.get(_normalize(word))


def name_rate(word: str) -> str:
    """Return the key of a rate with the unit that a word has: `requestsPerMinute` for `rpm`; else the word."""
    return _load().rates.get(_normalize(word), word)


def _normalize(word: str) -> str:
    return re.sub("[-_ ]", "", word).lower()


@cache
def _load() -> _OtherWords:
    return _OtherWords.model_validate(yaml.safe_load(files("rayhelm").joinpath("data/other_words.yaml").read_text()))
