"""Checks of single answers. Each returns the value for the fleet file, or raises ValueError with the reason."""

import re
from ipaddress import ip_network
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rayhelm.errors import FleetError, Problem
from rayhelm.facts import load_catalog
from rayhelm.facts.huggingface import resolve_online
from rayhelm.fleet.labels import FleetImage
from rayhelm.fleet.names import ModelName, Name

__all__ = [
    "check_address",
    "check_gpu",
    "check_image",
    "check_model",
    "check_model_name",
    "check_name",
    "check_revision",
    "derive_name",
]


def check_name(text: str) -> str:
    """A name of the fleet file, which becomes a Kubernetes name."""
    try:
        return TypeAdapter(Name).validate_python(text)
    except ValidationError:
        proposed = derive_name(text)
        raise ValueError(
            f"`{text}` cannot be a name: at most 47 lowercase letters, digits and `-`, with a letter first, and no word"
            f" of YAML such as `on`. Write for example `{proposed}`"
        ) from None


def check_model_name(text: str) -> str:
    """A name that clients send as `model`."""
    try:
        return TypeAdapter(ModelName).validate_python(text)
    except ValidationError:
        raise ValueError(
            f"`{text}` cannot be the name of a model: at most 96 letters, digits, `.`, `-` and `_`, in parts with `/`"
            " between them, and no word of YAML such as `on`. Write for example `llama-3.1-8b`"
        ) from None


def derive_name(text: str) -> str:
    """A name made of a folder or of the last part of a hub id."""
    name = re.sub("[^a-z0-9]+", "-", text.rpartition("/")[2].lower()).lstrip("-0123456789")[:47].rstrip("-")
    return name if len(name) > 3 else f"{name}-fleet".lstrip("-")


def check_gpu(text: str) -> str:
    """The id of a GPU of the catalog."""
    try:
        gpu = load_catalog().gpu(text)
    except FleetError as error:
        raise ValueError(f"{_describe(error)}. `rayhelm catalog gpus` lists all") from None
    if gpu.vendor == "google":
        raise ValueError(f"{gpu.id}: {gpu.limit}")
    return gpu.id


def check_address(text: str) -> str:
    """An address of the API server as CIDR."""
    try:
        network = ip_network(text.strip())
    except ValueError:
        raise ValueError(f"`{text}` is not an address or CIDR: write for example 10.0.0.1 or 10.0.0.1/32") from None
    return str(network)


def check_model(text: str, folder: Path = Path()) -> str:
    """The source of a model whose architecture is known."""
    try:
        resolve_online(text, folder, load_catalog())
    except FleetError as error:
        raise ValueError(f"{_describe(error)}. `rayhelm catalog models` lists all") from None
    return text


def check_revision(text: str) -> str:
    """A commit of the hub; empty for none."""
    if text and not re.fullmatch("[0-9a-f]{40}", text):
        raise ValueError(f"`{text}` is not a commit: 40 hexadecimal digits, from the history page of the hub")
    return text


def check_image(text: str) -> str:
    """An image with its tag or digest, as text."""
    before, _, after = text.partition("@") if "@" in text else text.rpartition(":")
    try:
        FleetImage.model_validate({"repository": before, "digest" if "@" in text else "tag": after})
    except ValidationError:
        raise ValueError(f"`{text}` is not an image with a tag or digest: registry.example/ray-vllm:2.60.0") from None
    return text


def _describe(error: FleetError) -> str:
    """The message, with the nearest names."""
    first: Problem = error.problems[0]
    return first.message.rstrip(".")
