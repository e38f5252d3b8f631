"""Rules of the sources of models: URLs that can be read, and revisions that fit them."""

import re
from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts import load_catalog
from rayhelm.fleet.base import short
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.models import ModelSpec
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import find_source_kind
from rayhelm.fleet.web_url import remove_secrets
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_sources"]

_DIGITS = {"hub": 40, "bucket": 64}
"""Hexadecimal digits of a revision."""
_SUMS = "sha256sum SHA256SUMS, the file that lists the sha256 of each file below the prefix"
_OLD_AZURE = ("az://", "wasb://", "wasbs://", "adl://")
_AZURE_EXAMPLE = "azure://models@acme.blob.core.windows.net"


def check_sources(fleet: Fleet) -> Iterator[Problem]:
    """Yield a problem for each source and each revision that has no meaning."""
    for name, model in fleet.models.items():
        yield from _check(model, ("models", name))


def _check(model: ModelSpec, path: Path) -> Iterator[Problem]:
    kind, source = find_source_kind(model.source), short(model.source)
    if kind == "unknown" and source.startswith("oci://"):
        yield problem_at(
            (*path, "source"),
            f"`{source}` is not `oci://REGISTRY/REPOSITORY@sha256:DIGEST`, or a folder below it: names are lower case,"
            " and the digest, 64 hexadecimal digits, pins the weights",
            _propose_image(model.source),
        )
    elif kind == "unknown":
        yield problem_at(
            (*path, "source"),
            f"`{source}` is none of: a hub id, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, a container of Azure"
            " (`azure://`, `abfss://`), `pvc://CLAIM/PATH`, `oci://IMAGE@DIGEST`, or a path in the container",
            _propose_source(model.source),
        )
    elif kind == "path" and not (model.architecture or model.memory) and (known := _find_full_id(source)):
        message = f"`{source}` would be a path in the container; the id of the model on the hub is `{known}`"
        yield problem_at((*path, "source"), message, Fix("", known))
    elif model.revision and len(model.revision) != _DIGITS.get(kind):
        if kind == "bucket":
            fix = Fix("", "0" * 64, f"with the output of: {_SUMS}")
            yield problem_at((*path, "revision"), f"`{source}` is pinned by 64 hexadecimal digits: {_SUMS}", fix)
        elif kind == "hub":
            fix = Fix("", "0" * 40, "with the commit, from the history page of the hub")
            yield problem_at((*path, "revision"), f"`{source}` is pinned by the 40 digits of a commit", fix)
        else:
            why = (
                f"nothing checks the revision of `{source}`: only hub ids and URLs of `s3://`, `gs://`, `azure://` and"
                " `abfss://` have one" + ". The digest pins an image" * (kind == "image")
            )
            yield problem_at((*path, "revision"), why, Fix.removal())


def _propose_source(source: str) -> Fix:
    """Return the readable form of a URL; a URL that no form has becomes an example with the same last part."""
    if hub_id := _find_hub_id(source):
        return Fix("", hub_id)
    for near, why in (
        (remove_secrets(source), "credentials belong in a Secret"),
        (_leave_out_dots(source), "without the dots"),
    ):
        if near != source and find_source_kind(near) not in ("unknown", "path"):
            return Fix("", near, why)
    name = re.sub("[^a-z0-9.-]+", "-", remove_secrets(source).rstrip("/").rpartition("/")[2].lower()).strip("-.")
    if source.startswith(_OLD_AZURE):
        return Fix("", f"{_AZURE_EXAMPLE}/{name or 'model'}", "an example: your container and storage account")
    return Fix("", f"s3://acme-models/{name or 'model'}", "an example: a bucket with a copy")


def _propose_image(source: str) -> Fix:
    """Return the same image with a digest; one with an impossible name becomes an example."""
    near = _leave_out_dots(source)
    if find_source_kind(near) == "image":
        return Fix("", near, "without the dots")
    digest = f"@sha256:{'0' * 64}"
    pinned = re.sub(r"(:[^/@]*)?(@.*)?$", "", source.lower()) + digest
    if find_source_kind(pinned) == "image":
        return Fix("", pinned, "with the digest of the image")
    return Fix("", f"oci://registry.example/models/qwen{digest}", "an example: your image, and its digest")


def _leave_out_dots(source: str) -> str:
    return re.sub(r"/\.{1,2}(?=/|$)", "", source)


def _find_full_id(source: str) -> str:
    """Return the hub id of a model that the catalog knows by its last part; empty for another source."""
    if "/" in source:
        return ""
    known = load_catalog().find_model(source)
    return known.id if known and known.id != source else ""


def _find_hub_id(url: str) -> str:
    """Return the hub id in the address of a page of the hub, or in an `hf://` URL; else an empty text."""
    # These pages have no weights.
    no_model = r"(?!(?:datasets|spaces|papers|collections|models|docs|blog)/)"
    found = re.match(
        rf"(?:https?://(?:www\.)?(?:huggingface\.co|hf\.co)/|hf://){no_model}([\w.-]+/(?!collections(?![\w.-]))[\w.-]+)",
        url,
    )
    return found[1] if found else ""
