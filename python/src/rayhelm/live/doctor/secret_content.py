"""Whether the content of a Secret can be used. No function returns or logs any of the content."""

import base64
import binascii
import json
import re
from datetime import datetime

__all__ = ["find_content_problem"]

_KEY_LINE = re.compile(r"^[0-9a-fA-F]{64}\s+[\w.-]{1,64}(\s+\d{4}-\d\d-\d\dT\S+)?\s*$")
"""A line of a gateway's key file: SHA-256, name, and optionally when it expires; `charts/gateway/files/keys.lua`."""
_SOON_DAYS = 14


_REMOTE_KEY = re.compile(rb"\s*[\w.~+/=-]+\s*", re.ASCII)
"""A key for a gateway of another cluster, as `charts/gateway/files/secrets.lua` reads it."""


def find_content_problem(key: str, encoded: str, now: datetime, path: str = "") -> str:
    """Return what is wrong with the value of one key, in words that do not show it; empty if it can be used.

    `path` is the file of the key in the pod, if the pod selects keys."""
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "is not base64"
    if not content:
        return "is empty"
    if path == "salt/key":
        return "" if content.strip() else "is empty: it has only white space"
    if path.startswith("remote/") and path.endswith("/key"):
        return "" if _REMOTE_KEY.fullmatch(content) else "has other characters than those of an API key"
    if key == "keys" or path.startswith("keys/"):
        return _check_key_file(content)
    if key == ".dockerconfigjson":
        return _check_pull_secret(content)
    if key == "tls.crt":
        return _check_certificate(content, now)
    if key == "tls.key":
        return "" if b"PRIVATE KEY-----" in content else "is not a private key in PEM form"
    if content != content.strip():
        return "begins or ends with white space, a line break for example, which becomes part of the value"
    return ""


def _check_key_file(content: bytes) -> str:
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    bad = [number for number, line in enumerate(lines, start=1) if not _KEY_LINE.match(line)]
    if not lines:
        return "has no key"
    if len(bad) == len(lines):
        return f"has {len(lines)} lines, and none is `SHA256 NAME [EXPIRY]`"
    return f"has {len(bad)} invalid lines of {len(lines)}; the gateway ignores them" if bad else ""


def _check_pull_secret(content: bytes) -> str:
    try:
        registries = json.loads(content).get("auths")
    except (ValueError, AttributeError, RecursionError):
        return "is not JSON with `auths`"
    return "" if isinstance(registries, dict) and registries else "has no registry in `auths`"


def _check_certificate(content: bytes, now: datetime) -> str:
    try:
        from cryptography import x509
    except ImportError:
        return "" if b"BEGIN CERTIFICATE" in content else "is not a certificate in PEM form"
    try:
        end = x509.load_pem_x509_certificate(content).not_valid_after_utc
    except ValueError:
        return "is not a certificate in PEM form"
    days = (end - now).days
    if end < now:
        return f"expired on {end:%Y-%m-%d}"
    return f"expires on {end:%Y-%m-%d}, in {days} days" if days < _SOON_DAYS else ""
