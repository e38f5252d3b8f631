"""The form of names of container image repositories."""

__all__ = ["MAX_REPOSITORY", "REPOSITORY"]

_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(\.{_LABEL})*(:[0-9]+)?"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
REPOSITORY = rf"({_HOST}/)?{_PART}(/{_PART})*"
"""With or without a registry's host. Source: the grammar of the module distribution/reference."""
MAX_REPOSITORY = 255
"""Characters that the same module allows."""
