"""Which image runs Ray and vLLM."""

from rayhelm.values.common.base import Values
from rayhelm.values.common.image import Digest, PullPolicy
from rayhelm.values.common.labels import ObjectName
from rayhelm.versions import versions

__all__ = ["ImageOverride", "RayImage"]


class ImageOverride(Values):
    """Another image for one worker group: AMD and Intel cards need their own builds.

    All images of one Ray cluster need the same Ray and the same Python minor version.
    """

    repository: str = ""
    """Repository; empty takes the one of `image`."""
    tag: str = ""
    """Tag; empty takes the one of `image`, unless a repository or digest is given here."""
    digest: Digest = ""
    """Digest `sha256:...`; wins over the tag."""
    includes_rayhelm: bool = False
    """As in `image`; looked at where another image is named here."""


class RayImage(Values):
    """The image of the head and, unless a group names its own, of the workers."""

    repository: str = versions().images["ray"].repository
    """Repository, with the registry's host where it is not the default one."""
    tag: str = versions().images["ray"].tag
    """Tag; `latest` is refused. It was not read from a registry: look it up, and pin the digest."""
    digest: Digest = versions().images["ray"].digest
    """Digest `sha256:...` wins over the tag: what was tested is what runs. Empty until somebody reads it."""
    includes_rayhelm: bool = False
    """The image has the Python package rayhelm; its wheel without requirements is enough. Then a stream that loses its
    replica ends with an error message, and Serve can import the policy `EngineQueue` on every node. The stock image
    lacks it."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls."""
    pull_secrets: list[ObjectName] = []
    """Names of the Secrets with registry credentials."""
