"""Where the weights are, and the Job that fetches them once, so that servers need no hub."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Quantity, Values
from rayhelm.values.common.labels import ObjectName
from rayhelm.values.ray_service.cluster import SecretKeyRef

__all__ = ["WeightsVolume"]


class WeightsClaim(Values):
    """The volume claim."""

    existing_claim: ObjectName | Literal[""] = ""
    """A claim that is there already; empty: the chart makes one."""
    keep: bool = True
    """The chart's claim, and so its weights, outlive the release; off: `helm uninstall` deletes them."""
    size: Quantity = "200Gi"
    """Size of the claim that the chart makes. It can only grow, where its storage class allows that."""
    storage_class: ObjectName | Literal[""] = ""
    """Its storage class; empty for the cluster's default. Kubernetes lets nobody edit it later."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = "ReadWriteMany"
    """`ReadWriteOnce` binds all workers, those of an upgrade too, to one node. Kubernetes lets nobody edit it later."""


class WeightsDownload(Values):
    """The Job that downloads every hub model into `<mountPath>/<source>/<revision>`."""

    enabled: bool = True
    """Off: somebody else fills the claim, at the same paths."""
    image: str = ""
    """Image with the `hf` command; empty for the serving image, which has it."""
    endpoint: Annotated[str, Field(pattern=r"^(https?://[^\s/]+(/\S*)?)?$")] = ""
    """A mirror in place of huggingface.co (`https://hub.example`), and its addresses and port in `networkPolicy.hub`;
    empty for the hub itself."""
    exclude: list[str] = ["original/*", "metal/*", "*.pth"]
    """Files left out: the same weights once more, in formats that vLLM does not read."""
    token_secret: SecretKeyRef = SecretKeyRef()
    """Hub token for gated models; only this Job sees it."""
    cpu: Quantity = "2"
    """CPU cores."""
    memory: Quantity = "8Gi"
    """Memory."""
    backoff_limit: int = Field(default=6, ge=0)
    """Tries; a new one goes on where the last ended."""


class WeightsVolume(Values):
    """Weights of hub models. Paths and buckets named as a model's `source` are used as they are."""

    enabled: bool = True
    """Off: there is no volume, and hub models need `offline: false`."""
    mount_path: str = Field(default="/models", pattern=r"^(/[a-z0-9][a-z0-9_-]*)+$")
    """Where the claim is mounted, read-only in servers; no slash at the end."""
    claim: WeightsClaim = WeightsClaim()
    """The volume claim."""
    download: WeightsDownload = WeightsDownload()
    """The Job that fills it."""
    offline: bool = True
    """Servers never ask the hub. Off: each node fetches for itself, with `download.tokenSecret`; say why below."""
    online_reason: str = ""
    """Why servers may reach the hub; required when `offline` is off."""
