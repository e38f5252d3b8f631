"""Find a model by a name of the catalog, a Hugging Face `config.json` or a hub id."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rayhelm.errors import Fix, FleetError, Problem, attempt, each_problem
from rayhelm.facts import Catalog, load_catalog
from rayhelm.facts._beside import QUANTIZATION_FILE, read_beside
from rayhelm.facts._config import parse_model
from rayhelm.facts._load import parse_record
from rayhelm.facts._mistral import convert_params
from rayhelm.facts._origin import OWN_FILE, Origin, shown
from rayhelm.facts.fleet_folder import find_outside_reason, is_plain_path
from rayhelm.facts.model import Checkpoint

if TYPE_CHECKING:
    import httpx

__all__ = ["read_config", "read_keys", "resolve", "resolve_online"]

_TIMEOUT_S = 5.0
_HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_MAX_BYTES = 4 << 20
"""Maximum size of a config.json, bytes. The largest seen has 3.1 MB: it lists the quantization of each layer."""
_CONFIG, _PARAMS = "config.json", "params.json"
"""Of the hub, and Mistral's own."""
_LONGEST_NAME = 200
_MAX_RECORD = 256 << 10
"""Most characters of a data file. One with all sizes has two thousand."""
_ALIAS = re.compile(r"(?m)^[^#'\"]*[\s:\[,{-]&\w")
_RECORDS = (".yaml", ".yml")
"""Suffixes of a data file of a model: `rayhelm catalog add` writes it."""

_GIVE_CONFIG = Fix.advice(
    "name a similar model, or give the config.json: `architecture: path/to/config.json` in the fleet file,"
    " `--config path/to/config.json` in `rayhelm fit` and `rayhelm estimate`"
)


def resolve(name: str, folder: Path | None, facts: Catalog | None = None) -> Checkpoint:
    """Return the model `name`: an entry of the catalog, a config.json, or a folder with one.

    `folder` is the one of the fleet file that has the name: only files below it are read. None for a name that was
    typed: any file is read. Does not use the network. A name of the catalog has precedence over a folder; `./name` is
    always the folder.
    """
    if _is_path(name):
        return _read_file(Path(name), folder)
    if "://" in name:
        raise FleetError(Problem(f"unknown model {shown(name)}", fix=_GIVE_CONFIG))
    facts = facts or load_catalog()
    if known := facts.find_model(name):
        return known
    if name and _holds_config(Path(name), folder):
        return _read_file(Path(name), folder)
    near = facts.build_unknown_model_problem(name)
    raise FleetError(replace(near, alternatives=(*near.alternatives, _GIVE_CONFIG)))


def read_config(source: Path | str | Mapping[str, Any], *, transport: httpx.BaseTransport | None = None) -> Checkpoint:
    """Return the record of a parsed config.json, of its path or the path of its folder, or of a name (see `resolve`).

    The hub is used only for an id that the catalog lacks, with `HF_HUB_OFFLINE`, `HF_ENDPOINT` and `HF_TOKEN`.
    """
    if isinstance(source, Mapping):
        return parse_model(source, _name(source, "config.json"), Origin("config.json"))
    if isinstance(source, Path):
        return _read_file(source)
    return resolve_online(source, None, transport=transport)


def resolve_online(
    name: str, folder: Path | None, facts: Catalog | None = None, *, transport: httpx.BaseTransport | None = None
) -> Checkpoint:
    """Resolve a name as `resolve` does, and read the config.json from the hub for an id that the catalog lacks."""
    try:
        return resolve(name, folder, facts)
    except FleetError as unknown:
        if _is_path(name) or not _HUB_ID.fullmatch(name):
            raise
        return _read_hub(name, unknown, transport)


def _is_path(name: str) -> bool:
    return name.endswith((".json", *_RECORDS)) or name.startswith((".", "/", "~"))


def _read_file(name: Path, folder: Path | None = None) -> Checkpoint:
    path, text = _read(name, folder)
    if path.suffix in _RECORDS:
        return _read_record(text, path)
    origin = Origin(str(path), text)
    keys = _parse(text, str(path))
    if path.name.endswith(_PARAMS):
        keys = convert_params(keys, origin)
    default = path.resolve().parent.name if path.name in (_CONFIG, _PARAMS) else path.stem
    return parse_model(keys, _name(keys, default), origin, read_beside(lambda name: _read_other(path, name, folder)))


def _read_record(text: str, path: Path) -> Checkpoint:
    """Return the model of a data file that `rayhelm catalog add` wrote."""
    again = Fix(command="rayhelm catalog add CONFIG", why="it writes the file from the config.json of the model")
    if len(text) > _MAX_RECORD:
        raise FleetError(Problem(f"is larger than {_MAX_RECORD >> 10} KiB", file=str(path), fix=again))
    if _ALIAS.search(text):
        raise FleetError(Problem("has YAML anchors, which no data file of a model needs", file=str(path), fix=again))
    with each_problem(lambda problem: replace(problem, fix=again)):
        try:
            return parse_record(text, path, Checkpoint, yaml.SafeLoader)
        except RecursionError:
            raise FleetError(Problem("is nested too deeply", file=str(path))) from None


def read_keys(path: Path) -> tuple[Path, dict[str, Any]]:
    """Return the path of a config.json, which can be given as its folder, and its keys. Raises FleetError."""
    fix = Fix.advice("give the config.json of the model, or its folder")
    with each_problem(lambda problem: replace(problem, fix=fix)):
        path, text = _read(path)
    keys = _parse(text, str(path))
    beside = read_beside(lambda name: _read_other(path, name, None)).quantization
    has_own = keys.get("quantization_config") or keys.get("compression_config")
    return path, keys | ({"quantization_config": dict(beside)} if beside and not has_own else {})


def _read_other(path: Path, name: str, folder: Path | None) -> dict[str, Any] | None:
    """Return the keys of another file of the same model. Tools that keep several models in one folder begin its name
    as that of the config.json. Only files beside a config.json or params.json belong to a model."""
    end = next((end for end in (_CONFIG, _PARAMS) if path.name.endswith(end)), "")
    if not end:
        return None
    beside = path.with_name(path.name.removesuffix(end) + name)
    if not _exists(beside):
        return None
    beside, text = _read(beside.relative_to(folder) if folder else beside, folder)
    return _parse(text, str(beside))


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


def _read(name: Path, folder: Path | None = None) -> tuple[Path, str]:
    """Return the path of the file (`name` can be its folder) and its text. No other function opens a path of the
    user."""
    path = name
    try:
        path = _find_file(name, folder)
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise _build_file_error(path, "is larger than 4 MiB, which no config.json is")
        return path, content.decode("utf-8-sig")
    except OSError as error:
        raise _build_file_error(path, f"cannot be read: {error.strerror}") from None
    except RuntimeError:
        raise _build_file_error(path, "cannot be read: `~` names no user of this computer") from None
    except ValueError:
        raise _build_file_error(path, "is not JSON: it is not UTF-8 text") from None


def _find_file(name: Path, folder: Path | None) -> Path:
    """Return the path of a file, or of the config.json in a folder. Raises FleetError if `folder` does not have it."""
    if folder is None:
        path = name.expanduser()
        return path / _find_name(path) if path.is_dir() else path
    reason = find_outside_reason(folder, str(name))
    if not reason and (folder / name).is_dir():
        name /= _find_name(folder / name)
        reason = find_outside_reason(folder, str(name))
    if reason:
        raise _build_file_error(name, reason)
    return folder / name


def _find_name(folder: Path) -> str:
    return _PARAMS if _exists(folder / _PARAMS) and not _exists(folder / _CONFIG) else _CONFIG


def _build_file_error(path: Path, why: str) -> FleetError:
    return FleetError(Problem(why, file=_shorten(str(path)), fix=_GIVE_CONFIG))


def _parse(text: str, file: str) -> dict[str, Any]:
    try:
        keys = json.loads(text)
    except json.JSONDecodeError as error:
        why = f"is not JSON: {error.msg}, column {error.colno}"
        raise FleetError(Problem(why, file=file, line=error.lineno, fix=OWN_FILE)) from None
    except (RecursionError, ValueError):
        why = "is not a model's config.json: it is nested too deeply, or has a number with too many digits"
        raise FleetError(Problem(why, file=file, fix=OWN_FILE)) from None
    if not isinstance(keys, dict):
        raise FleetError(
            Problem("is not a model's config.json: the top level is not an object", file=file, fix=OWN_FILE)
        )
    return keys


def _shorten(path: str) -> str:
    return path if len(path) <= _LONGEST_NAME else f"{path[: _LONGEST_NAME // 2]}…{path[-20:]}"


def _name(keys: Mapping[str, Any], default: str) -> str:
    """Return the publisher's name of the model, or `default` if the file has no valid name."""
    name = keys.get("_name_or_path")
    fine = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME
    return str(name) if fine else default


def _holds_config(name: Path, folder: Path | None) -> bool:
    is_allowed = folder is None or is_plain_path(str(name))
    return is_allowed and any(_exists((folder or Path()) / name / file) for file in (_CONFIG, _PARAMS))


def _read_hub(name: str, unknown: FleetError, transport: httpx.BaseTransport | None) -> Checkpoint:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        raise _build_hub_error(unknown, "and HF_HUB_OFFLINE is set, so the hub is not used")
    import httpx  # imported here, because the import is slow

    token = os.environ.get("HF_TOKEN")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    url = f"{_get_endpoint()}/{name}/resolve/main/"
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, transport=transport, headers=headers) as client:
        try:
            text = client.get(f"{url}{_CONFIG}").raise_for_status().text
        except httpx.HTTPStatusError as error:
            raise _build_hub_error(unknown, f"and {_get_endpoint()} answers {error.response.status_code}") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            raise _build_hub_error(unknown, f"and {_get_endpoint()} cannot be reached") from None
        if (keys := attempt(lambda: _parse(text, url))) is None:
            raise _build_hub_error(unknown, f"and {_get_endpoint()} answers no config.json")
        beside = read_beside(lambda file: _read_other_of_hub(client, f"{url}{file}", keys))
    return parse_model(keys, name, Origin(f"{_get_endpoint()}/{name}", text), beside)


def _read_other_of_hub(client: httpx.Client, url: str, keys: dict[str, Any]) -> dict[str, Any] | None:
    """Return the keys of another file of a repository, if the model can have it; None without an answer."""
    import httpx

    has_own = keys.get("quantization_config") or keys.get("compression_config")
    generates = "For" in str(keys.get("architectures")) and "MaskedLM" not in str(keys.get("architectures"))
    wanted = {QUANTIZATION_FILE: not has_own, "sentence_bert_config.json": not generates}
    if not wanted.get(url.rpartition("/")[2]):
        return None
    try:
        text = client.get(url).raise_for_status().text
    except httpx.HTTPError:
        return None
    return attempt(lambda: _parse(text, url))


def _build_hub_error(unknown: FleetError, why: str) -> FleetError:
    problem = unknown.problems[0]
    return FleetError(replace(problem, message=f"{problem.message}, {why}"))


def _get_endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
