"""Volume of the model weights, and the Job that downloads them once, so that servers do not need the hub."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Quantity, Values, WebUrl
from rayhelm.deploy.values.common.image import ImageName
from rayhelm.deploy.values.common.labels import Labels, ObjectName, Toleration
from rayhelm.deploy.values.common.pods import PodSettings
from rayhelm.deploy.values.ray_service.cluster import SecretKeyRef
from rayhelm.deploy.values.ray_service.resources import ContainerResources, build_resources
from rayhelm.fleet.sources import IMAGE_WITH_DIGEST

__all__ = ["WeightsBucket", "WeightsImage", "WeightsVolume"]

ModelImageName = Annotated[str, Field(pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=47)]


class WeightsClaim(Values):
    """PersistentVolumeClaim of the weights."""

    existing_claim: ObjectName | Literal[""] = ""
    """Name of an existing claim. The chart creates one when empty."""
    keep: bool = True
    """Keep the claim that the chart created when the release is uninstalled. When off, `helm uninstall` deletes the
    weights."""
    size: Quantity = "200Gi"
    """Size of the claim that the chart creates. It can only grow, and only if the storage class allows expansion."""
    storage_class: ObjectName | Literal[""] = ""
    """StorageClass of the claim; the cluster's default when empty. It cannot be changed later."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce", ""] = ""
    """Access mode of the claim. `ReadWriteOnce` binds all workers, also those of an upgrade, and the Job to one node.
    Empty: that of the existing claim, else `ReadWriteOnce` if one worker mounts it (one pod at most, and
    `upgrade.strategy: None`), else `ReadWriteMany`, which the StorageClass must offer. It cannot be changed later."""


class WeightsBucket(Values):
    """Store of the models whose `source` is an `s3://`, `gs://`, `azure://` or `abfss://` URL and that have a
    `revision`."""

    endpoint: Annotated[str, Field(pattern=r"^(https?://[^\s/@?#]+)?$")] = ""
    """URL of an S3-compatible store (`https://s3.example:9000`); Amazon S3 when empty, Google Cloud Storage for
    `gs://`, the host in the URL for Azure. Set its addresses and port in `networkPolicy.bucket` too."""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]*$")] = ""
    """Region of the bucket (`eu-central-1`)."""
    credentials_secret: ObjectName | Literal[""] = ""
    """Secret with `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if temporary, `AWS_SESSION_TOKEN`. Only the Job
    reads it. When empty, the Job uses the workload identity of `serviceAccount`. `gs://` needs the two parts
    of an HMAC key here. For Azure the key is `AZURE_STORAGE_SAS_TOKEN`, a shared access signature that can read."""


class WeightsDownload(PodSettings):
    """Job that downloads each hub model, and each model of a bucket with a `revision`, into
    `<mountPath>/<source>/<revision>`."""

    enabled: bool = True
    """Create the Job. When off, fill the claim yourself with the same paths."""
    image: ImageName = ""
    """Image with the `hf` command. The serving image when empty, which has it."""
    endpoint: WebUrl = ""
    """URL of a mirror in place of huggingface.co (`https://hub.example`). Set its addresses and port in
    `networkPolicy.hub` too."""
    exclude: list[str] = ["original/*", "metal/*", "*.pth"]
    """Files that are not downloaded: copies of the weights in formats that vLLM does not read."""
    token_secret: SecretKeyRef = SecretKeyRef()
    """Hub token for gated models. Only this Job mounts it."""
    bucket: WeightsBucket = WeightsBucket()
    """Store of the models in a bucket."""
    service_account: ObjectName | Literal[""] = ""
    """Service account of the Job that you create, for a workload identity that the servers do not get. The one of the
    release when empty."""
    resources: ContainerResources = build_resources(cpu="2", memory="8Gi")
    """Resources of the container."""
    node_selector: Labels = {}
    """Labels of the nodes for the Job."""
    tolerations: list[Toleration] = []
    """Tolerations of the Job's pod."""
    backoff_limit: int = Field(default=6, ge=0)
    """Retries of the Job. A retry continues the download where the last one stopped."""


class WeightsImage(Values):
    """OCI image whose files are a model, mounted read-only at `/model-images/<name>` in each worker. Needs Kubernetes
    1.35 and a container runtime with image volumes, such as containerd 2.1."""

    reference: Annotated[str, Field(pattern=rf"^{IMAGE_WITH_DIGEST}$", max_length=512)]
    """Image with its digest: `registry.example/models/llama@sha256:<64 digits>`. Another digest starts a new Ray
    cluster, because it is in the pod template."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When the kubelet pulls it, with the pull secrets of the pod."""


class WeightsVolume(Values):
    """Weights of hub models, and of buckets with a `revision`. A path is used as it is; a bucket without a `revision`
    is read by each server."""

    enabled: bool = True
    """Mount a volume with the weights. When off, hub models need `offline: false`."""
    mount_path: str = Field(default="/models", pattern=r"^(/[a-z0-9][a-z0-9_-]*)+$")
    """Mount path of the claim, without a slash at the end. Servers mount it read-only."""
    claim: WeightsClaim = WeightsClaim()
    """PersistentVolumeClaim of the weights."""
    images: dict[ModelImageName, WeightsImage] = {}
    """OCI images with weights, also when `enabled` is off. Use `/model-images/<name>`, or a folder of it, as the
    `source` of a model."""
    download: WeightsDownload = WeightsDownload()
    """Job that downloads the weights."""
    offline: bool = True
    """Servers do not contact the hub. When off, each server downloads for itself with `download.tokenSecret`, and
    `onlineReason` is required."""
    online_reason: str = ""
    """Reason why servers contact the hub. Required when `offline` is off."""
