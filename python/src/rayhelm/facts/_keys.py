"""Read and check the keys of a config.json. A value with a wrong type or outside its bounds is refused with file, line
and key."""

import re
from collections.abc import Mapping
from typing import Any

from rayhelm.errors import Fix, FleetError
from rayhelm.facts._origin import Origin, shown

__all__ = ["Config"]

_MOST_LAYERS = 1_000
"""Maximum number of layers; the deepest published model has 126."""
_MOST = 2**24
"""Maximum of other counts; the longest published context is 10 million tokens."""


class Config:
    """Keys of a config.json, or of an object in it, and their source. Null is the same as absent."""

    def __init__(
        self,
        keys: Mapping[str, Any],
        origin: Origin,
        inside: tuple[str, ...] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._keys, self._origin, self._inside, self._names = keys, origin, inside, names or {}

    @property
    def file(self) -> str:
        """Return the file or URL of the keys."""
        return self._origin.file

    @property
    def has_text(self) -> bool:
        """Return whether they were read from it."""
        return bool(self._origin.text)

    @property
    def empty(self) -> bool:
        return not self._keys

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def has(self, key: str) -> bool:
        return self._value(key) is not None

    def describe(self, key: str) -> str:
        """Return the value as text, to look for words in it."""
        return str(self._value(key))

    def is_text(self, key: str) -> bool:
        return isinstance(self._value(key), str)

    def is_object(self, key: str) -> bool:
        return isinstance(self._value(key), Mapping)

    def pick(self, *keys: str) -> dict[str, Any]:
        """Return those of the keys that are present, with their values."""
        return {key: value for key in keys if (value := self._value(key)) is not None}

    def is_list(self, key: str) -> bool:
        return isinstance(self._value(key), list)

    def count(self, key: str, default: int | None = None, *, least: int = 1, most: int | None = None) -> int:
        """Return a whole number from `least` to `most`."""
        value = self._get(key, default)
        most = most or (_MOST_LAYERS if key.endswith("layers") else _MOST)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.problem(key, f"is {shown(value)}, not a whole number from {least} to {most:,}")
        return value

    def count_or_none(self, key: str, *, least: int = 1) -> int | None:
        return self.count(key, least=least) if self.has(key) else None

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            fix = Fix(value=str(value).lower() in ("true", "1"))
            raise self.problem(key, f"is {shown(value)}, neither true nor false", fix)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number from 0 to 1,000."""
        value = self._get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1_000:
            raise self.problem(key, f"is {shown(value)}, not a number from 0 to 1,000")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.problem(key, f"is {shown(value)}, not a text")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; empty if the key is absent."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            fix = Fix(value=[shown(value)[1:-1]]) if isinstance(value, str) else None
            raise self.problem(key, f"is {shown(value)}, not a list of texts", fix)
        return value

    def layers(self, key: str) -> list[int]:
        """Return a list of layer numbers, counted from 0; empty if the key is absent."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, int) and 0 <= item < _MOST_LAYERS for item in value):
            raise self.problem(key, f"is {shown(value)}, not a list of layer numbers", Fix(value=[]))
        return value

    def edge(self, key: str) -> int:
        """Return the edge of a square, written as one number or as two equal ones."""
        value = self._value(key)
        if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
            return Config({key: value[0]}, self._origin, self._inside).count(key)
        return self.count(key)

    def flags(self, key: str) -> list[bool]:
        """Return a list of true and false, written as such or as 1 and 0; empty if the key is absent."""
        value = self._get(key, [])
        if not isinstance(value, list) or len(value) > _MOST_LAYERS or any(item not in (0, 1) for item in value):
            raise self.problem(key, f"is {shown(value)}, not a list of 0 and 1")
        return [bool(item) for item in value]

    def pair(self, key: str) -> tuple[int, int] | None:
        """Return two whole numbers, as a list or as `128x128`."""
        if not self.has(key):
            return None
        value = self._value(key)
        edges = [int(edge) for edge in value.split("x")] if _is_pair(value) else value
        match edges:
            case [int(rows), int(columns)] if 0 < rows <= _MOST and 0 < columns <= _MOST:
                return rows, columns
        raise self.problem(key, f"is {shown(value)}, not two whole numbers from 1 on", Fix(value=[128, 128]))

    def part(self, key: str, defaults: Mapping[str, Any] | None = None) -> "Config":
        """Return a nested object, completed with `defaults`."""
        value = self._get(key)
        if not isinstance(value, Mapping):
            raise self.problem(key, f"is {shown(value)}, not an object")
        return Config(value, self._origin, (*self._inside, key)).with_defaults(defaults or {})

    def parts(self, key: str) -> "list[Config]":
        """Return a list of nested objects."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.problem(key, f"is {shown(value)}, not a list of objects")
        return [Config(item, self._origin, (*self._inside, key)) for item in value]

    def first_part(self, key: str) -> "Config":
        """Return the first value of a nested object whose values are objects."""
        parts = self.part(key)
        name = next(iter(parts._keys), None)
        if name is None:
            raise self.problem(key, "is empty")
        return parts.part(name)

    def with_defaults(self, defaults: Mapping[str, Any]) -> "Config":
        written = {key: value for key, value in self._keys.items() if value is not None}
        return Config({**defaults, **written}, self._origin, self._inside, self._names)

    def with_values(self, values: Mapping[str, Any]) -> "Config":
        """Return the keys with other values of some of them."""
        return Config({**self._keys, **values}, self._origin, self._inside, self._names)

    def with_names(self, names: Mapping[str, str]) -> "Config":
        """Return the same keys, read by the general names of `names` as well."""
        return Config(self._keys, self._origin, self._inside, {**self._names, **names})

    def problem(self, key: str, message: str, fix: Fix | None = None) -> FleetError:
        return self._origin.problem((*self._inside, self._names.get(key, key)), message, fix)

    def _value(self, key: str) -> Any:
        return self._keys.get(self._names.get(key, key))

    def _get(self, key: str, default: Any = None) -> Any:
        value = self._value(key)
        value = default if value is None else value
        if value is None:
            raise self.problem(key, "is missing")
        return value


def _is_pair(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{1,8}x\d{1,8}", value) is not None
