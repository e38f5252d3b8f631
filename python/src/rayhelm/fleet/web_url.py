"""Addresses that people type, and the secrets that can be in them."""

import re
from urllib.parse import SplitResult, urlsplit

__all__ = ["find_secret_part", "hide_secrets", "remove_secrets", "split_web_url"]

_PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?P<authority>[^/?#\s]*)(?P<path>[^?#\s]*)(?P<rest>.*)", re.S
)
_SSH = ("ssh://", "git+ssh://", None)
"""Git takes `git@host:path` for SSH."""
_USER = re.compile(r"(?i)((?:https?|git|ssh|git\+ssh|oci|s3|gs)://)[^/?#\s@]*@")
_QUERY = re.compile(r"(://[^\s?]*\?)[^\s`'\"]+")


def split_web_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL with a host; None for all other text."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, or a port that is no number
        return None
    return parts if is_url and not any(map(str.isspace, text)) else None


def find_secret_part(url: str) -> str:
    """Return the part of a URL that may be a secret; empty if it has none. A user of SSH is none, its password is."""
    found = _PARTS.match(url)
    assert found
    user, at, _ = found["authority"].rpartition("@")
    scheme = found["scheme"] and found["scheme"].lower()
    if at and (scheme not in _SSH or ":" in user):
        return "a user or password"
    return "a query or fragment" if found["rest"].startswith(("?", "#")) else ""


def remove_secrets(url: str) -> str:
    """Return the URL without user, password, query and fragment."""
    found = _PARTS.match(url)
    assert found
    return f"{found['scheme'] or ''}{found['authority'].rpartition('@')[2]}{found['path']}"


def hide_secrets(text: str) -> str:
    """Return a text for messages: users, passwords and queries of URLs in it are `…`. The container of
    `azure://CONTAINER@ACCOUNT` is no user."""
    return _QUERY.sub(r"\1…", _USER.sub(r"\1…@", text))
