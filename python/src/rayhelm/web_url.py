"""Addresses that people type."""

from urllib.parse import SplitResult, urlsplit

__all__ = ["split_web_url"]


def split_web_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL with a host; None for all other text."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, or a port that is no number
        return None
    return parts if is_url and not any(map(str.isspace, text)) else None
