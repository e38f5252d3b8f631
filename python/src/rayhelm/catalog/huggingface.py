"""Reads the architecture of a model that the catalogue lacks out of its Hugging Face `config.json`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayhelm.catalog import catalog
from rayhelm.catalog._config import model_of
from rayhelm.catalog.model import Model
from rayhelm.errors import FleetError, Problem

if TYPE_CHECKING:
    import httpx

__all__ = ["read_config"]

_TIMEOUT_S = 5.0
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_HINT = "download its config.json and name it: --config path/to/config.json"


def read_config(source: Path | str | Mapping[str, Any], *, transport: httpx.BaseTransport | None = None) -> Model:
    """The record of a parsed config.json, of its path (or its folder's), or of a hub id.

    The hub is asked only for an id that the catalogue lacks; `HF_HUB_OFFLINE`, `HF_ENDPOINT` and `HF_TOKEN` count.
    """
    if isinstance(source, Mapping):
        return model_of(source, str(source.get("_name_or_path") or "config.json"), "config.json")
    if isinstance(source, Path) or _looks_like_path(source):
        return _from_file(Path(source))
    try:
        return catalog().model(source)
    except FleetError as unknown:
        if not _HUB_ID.fullmatch(source):
            raise
        return model_of(_from_hub(source, unknown, transport), source, f"{_endpoint()}/{source}")


def _looks_like_path(source: str) -> bool:
    return source.endswith(".json") or source.startswith((".", "/", "~")) or Path(source).exists()


def _from_file(path: Path) -> Model:
    path = path.expanduser()
    path = path / "config.json" if path.is_dir() else path
    try:
        keys = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FleetError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None
    except ValueError as error:
        raise FleetError(Problem(f"is not JSON: {error}", file=str(path))) from None
    if not isinstance(keys, dict):
        raise FleetError(Problem("is not a model's config.json: its top is no object", file=str(path)))
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return model_of(keys, str(keys.get("_name_or_path") or name), str(path))


def _from_hub(name: str, unknown: FleetError, transport: httpx.BaseTransport | None) -> dict[str, Any]:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        raise _unreachable(unknown, "and HF_HUB_OFFLINE forbids asking the hub")
    import httpx  # only this branch needs it, and it takes long to import

    token = os.environ.get("HF_TOKEN")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, transport=transport) as client:
            answer = client.get(f"{_endpoint()}/{name}/resolve/main/config.json", headers=headers)
        keys = answer.raise_for_status().json()
    except httpx.HTTPStatusError as error:
        raise _unreachable(unknown, f"and {_endpoint()} answers {error.response.status_code}") from None
    except (httpx.HTTPError, ValueError):
        raise _unreachable(unknown, f"and {_endpoint()} cannot be reached") from None
    if not isinstance(keys, dict):
        raise _unreachable(unknown, f"and {_endpoint()} answers no config.json")
    return keys


def _unreachable(unknown: FleetError, why: str) -> FleetError:
    problem = unknown.problems[0]
    return FleetError(Problem(f"{problem.message}, {why}", mend=f"{problem.mend}\nor {_HINT}"))


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
