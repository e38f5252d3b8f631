"""A small instruct model from a hub, in place of random weights: its name, its download, and its values."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache as remembered
from functools import partial
from importlib.resources import files
from pathlib import Path

import httpx
import yaml
from pydantic import Field

from rayhelm.deploy.values.ray_service.engine import Engine
from rayhelm.deploy.values.ray_service.serve import Accelerator, ModelAutoscaling, ServedModel
from rayhelm.errors import UsageError
from rayhelm.facts.closed import Closed

__all__ = ["CACHE_BYTES", "DEFAULT", "Downloaded", "SmallModel", "build_small_model", "fetch", "parse_small_model"]

DEFAULT = "default"
PATIENCE = 5.0
"""Seconds in which a hub has to answer."""
CONTEXT = 4096
"""Longest prompt and answer, tokens: a CPU reads some hundred tokens of a prompt per second."""
CACHE_BYTES = 1024**3
"""KV cache, in 32 bits: enough for that context of a model with up to 256 KiB per token."""
SEQUENCES = 8
FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")


class SmallModel(Closed):
    """A model of a hub. License and size are known for the default only."""

    id: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    revision: str
    license: str = ""
    bytes: int = 0

    def __str__(self) -> str:
        known = f" ({self.license}, {self.bytes / 1e6:.0f} MB)" if self.bytes else ""
        return f"{self.id}@{self.revision[:12]}{known}"


@dataclass(frozen=True)
class Downloaded:
    """Files of a small model on this computer."""

    model: SmallModel
    folder: Path


@remembered
def _load_default() -> SmallModel:
    return SmallModel.model_validate(yaml.safe_load(files("rayhelm").joinpath("data/small_model.yaml").read_text()))


def parse_small_model(text: str) -> SmallModel:
    """Read `default` or ID@REVISION. Raises UsageError."""
    if text == DEFAULT:
        return _load_default()
    if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", text):
        default = _load_default()
        raise UsageError(
            f"`--small-model {text}`: write `{DEFAULT}`, or ID@REVISION with the 40 digits of a commit,"
            f" for example {default.id}@{default.revision}"
        )
    name, _, revision = text.partition("@")
    return SmallModel(id=name, revision=revision)


def fetch(model: SmallModel, endpoint: str = "", cache: Path | None = None) -> Downloaded | str:
    """Return the files of the cache, or download them with progress on standard error. Return why there are none.

    huggingface_hub reads the token and the defaults of `endpoint` and `cache` from HF_TOKEN, HF_ENDPOINT and HF_HOME.
    """
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    endpoint = endpoint or constants.ENDPOINT
    download: Callable[..., str] = partial(
        snapshot_download,
        repo_id=model.id,
        revision=model.revision,
        allow_patterns=list(FILES),
        cache_dir=cache,
        endpoint=endpoint,
        etag_timeout=PATIENCE,
    )
    try:
        folder = Path(download(local_files_only=True))
        if _is_complete(folder):
            return Downloaded(model, folder)
    except LocalEntryNotFoundError:
        pass
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set, and the cache does not have it"
    if problem := _ask(f"{endpoint}/{model.id}/resolve/{model.revision}/config.json"):
        return problem
    try:
        folder = Path(download())
    except Exception as error:  # its client for HTTP is httpx or httpx2 by version, each with exceptions of its own
        return f"the download failed, and the next start continues it: {_first_line(error)}"
    return Downloaded(model, folder) if _is_complete(folder) else f"{endpoint} has no weights of it"


def build_small_model(model: ServedModel, small: Downloaded) -> ServedModel:
    """Return a served model with the name and the limits of `model` and the weights of the small one."""
    context = min(model.engine.max_model_len, CONTEXT)
    sequences = min(model.engine.max_num_seqs, SEQUENCES)
    return ServedModel(
        source=str(small.folder),
        task=model.task,
        aliases=model.aliases,
        engine=Engine(
            max_model_len=context,
            max_num_seqs=sequences,
            max_num_batched_tokens=CONTEXT,
            dtype="float32",
            enforce_eager=True,
            extra={"kv_cache_memory_bytes": CACHE_BYTES},
        ),
        accelerator=Accelerator(kind="cpu"),
        autoscaling=ModelAutoscaling(target_ongoing_requests=sequences),
        router=model.router,
        graceful_shutdown_seconds=5,
    )


def _is_complete(folder: Path) -> bool:
    """Return whether an interrupted download left nothing out that a server needs."""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        weights = {folder / name for name in json.loads(index.read_text())["weight_map"].values()}
    else:
        # `model-00001-of-00002.safetensors` is one of several, which the index names.
        weights = {path for path in folder.glob("*.safetensors") if "-of-" not in path.name}
    files = {folder / "config.json", folder / "tokenizer_config.json", *weights}
    return bool(weights) and all(path.exists() for path in files)


def _ask(url: str) -> str:
    """Return why the hub cannot be used; empty if it answers in time."""
    from huggingface_hub import get_token

    headers = {"Authorization": f"Bearer {token}"} if (token := get_token()) else {}
    try:
        answer = httpx.head(url, headers=headers, timeout=PATIENCE, follow_redirects=True)
    except httpx.TimeoutException:
        return f"{url} does not answer within {PATIENCE:.0f} s"
    except httpx.HTTPError as error:
        return f"{url} does not answer: {_first_line(error)}"
    return "" if answer.is_success else f"{url} answers {answer.status_code}"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
