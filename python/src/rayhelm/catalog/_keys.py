"""A config.json that says by name which of its keys is missing or makes no sense."""

from collections.abc import Mapping
from typing import Any

from rayhelm.errors import FleetError, Problem

__all__ = ["Config"]


class Config:
    """Keys of a config.json, or of a part of it, and where they were read."""

    def __init__(self, keys: Mapping[str, Any], where: str, inside: str = "") -> None:
        self.keys, self.where, self._inside = keys, where, inside

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or `default` where it is left out or null."""
        value = self.keys.get(key)
        return default if value is None else value

    def need(self, key: str) -> Any:
        if self.keys.get(key) is None:
            raise self.problem(f"config.json lacks `{self._inside}{key}`", "take the publisher's own file")
        return self.keys[key]

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number above zero."""
        value = self.need(key) if default is None else self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.problem(f"`{self._inside}{key}` is {value!r}, not a whole number above zero")
        return value

    def part(self, name: str, defaults: Mapping[str, Any]) -> "Config":
        """A nested configuration, with the defaults that its publisher leaves out."""
        keys = self.need(name)
        if not isinstance(keys, Mapping):
            raise self.problem(f"`{name}` is no object")
        return Config({**defaults, **keys}, self.where, f"{name}.")

    def problem(self, message: str, mend: str = "") -> FleetError:
        return FleetError(Problem(message, file=self.where, mend=mend))
