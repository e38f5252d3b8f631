"""Where the weights of a model come from, by the form of its `source`."""

import re
from typing import Literal
from urllib.parse import urlsplit

__all__ = [
    "BUCKET",
    "CLAIM",
    "IMAGE",
    "IMAGE_WITH_DIGEST",
    "find_source_kind",
    "find_store",
    "is_downloaded",
    "is_hub_id",
]

BUCKET = re.compile(
    r"(s3://[a-z0-9][a-z0-9.-]+[a-z0-9]|gs://[a-z0-9][a-z0-9._-]+[a-z0-9]"
    r"|(azure|abfss)://[a-z0-9-]{3,63}@[a-z0-9]{3,24}(\.[a-z0-9-]+)*\.(blob|dfs)(\.[a-z0-9-]+)+)"
    r"(/[A-Za-z0-9_][A-Za-z0-9._=-]*)*"
)
CLAIM = re.compile(
    r"pvc://(?P<claim>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)/(?P<path>[A-Za-z0-9_][\w.=-]*(/[\w=-][\w.=-]*)*)"
)
IMAGE_WITH_DIGEST = (
    r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]*)?"
    r"@sha256:[0-9a-f]{64}"
)
"""Reference of an image: registry, repository, an optional tag, and the digest."""
IMAGE = re.compile(rf"oci://(?P<reference>{IMAGE_WITH_DIGEST})(?P<folder>(/[A-Za-z0-9_][\w.=-]*)*)")
_SERVER = re.compile(r"(s3|gs)://[^\s?#@]+|(abfss|azure)://[^\s?#@:]+(@[^\s?#@]+)?")
"""Without credentials and queries: all readers of the values could read them."""


def find_source_kind(source: str) -> Literal["hub", "bucket", "claim", "image", "path", "server", "unknown"]:
    """Return the kind of a source: a hub id, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    `azure://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX`, `pvc://CLAIM/PATH`, `oci://IMAGE@DIGEST/PATH`, a path in
    the container, another URL that Ray reads in each server, or an unknown URL."""
    if BUCKET.fullmatch(source):
        return "bucket"
    if CLAIM.fullmatch(source):
        return "claim"
    if IMAGE.fullmatch(source):
        return "image"
    if "://" in source:
        return "server" if _SERVER.fullmatch(source) else "unknown"
    return "hub" if is_hub_id(source) else "path"


def find_store(source: str) -> str:
    """Return what one Secret of credentials reads: `s3`, `gs`, or the name of an account of Azure."""
    url = urlsplit(source)
    return (url.hostname or "").partition(".")[0] if url.scheme in ("azure", "abfss") else url.scheme


def is_downloaded(source: str, revision: str | None) -> bool:
    """Return whether the download Job writes the model to the volume."""
    return is_hub_id(source) or (find_source_kind(source) == "bucket" and bool(revision))


def is_hub_id(source: str) -> bool:
    """Return whether a source is a hub id: `owner/name`, not a path or a URL."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", source) is not None
