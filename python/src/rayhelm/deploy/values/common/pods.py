"""Settings of pods, in Kubernetes' shape.

The chart checks what a schema cannot: labels that the chart owns, volumes that Pod Security `restricted` refuses,
mounts over folders that the chart uses (templates/lib/_pod.tpl).
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rayhelm.deploy.values.common.base import Text, Values
from rayhelm.deploy.values.common.labels import Annotations, LabelKey, Labels, ObjectName, SecretKeyName

__all__ = ["EnvVar", "ImagePullSecret", "PodSettings", "TopologySpread"]

EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
VolumeName = Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Affinity = Annotated[
    dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]],
    Field(json_schema_extra={"propertyNames": {"enum": ["nodeAffinity", "podAffinity", "podAntiAffinity"]}}),
]


_TEXT = {"type": "string"}


def _fields(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _check_volume(volume: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(volume.get("name"), str):
        raise PydanticCustomError("volume_name", "has no `name` that is a text")
    return volume


_PROJECTED = _fields(
    sources={
        "type": "array",
        "items": _fields(serviceAccountToken=_fields(audience=_TEXT), podCertificate=_fields(signerName=_TEXT)),
    }
)
"""What the chart reads of a projected volume."""
Volume = Annotated[
    dict[str, Any],
    AfterValidator(_check_volume),
    Field(json_schema_extra={"required": ["name"], "properties": {"name": _TEXT, "projected": _PROJECTED}}),
]


def _check_container(container: dict[str, Any]) -> dict[str, Any]:
    if not all(isinstance(container.get(key), str) for key in ("name", "image")):
        raise PydanticCustomError("container", "has no `name` and `image` that are texts")
    return container


def _check_patch(patch: dict[str, Any]) -> dict[str, Any]:
    spec = patch.get("spec", {})
    named = [spec.get(kind, []) for kind in ("containers", "initContainers")] if isinstance(spec, dict) else [None]
    if not all(
        isinstance(each, list) and all(isinstance(one, dict) and "name" in one for one in each) for each in named
    ):
        raise PydanticCustomError("pod_template", "has a `spec` that is no map, or a container without `name`")
    return patch


_NAMED = {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}}
Container = Annotated[
    dict[str, Any],
    AfterValidator(_check_container),
    Field(
        json_schema_extra={
            "required": ["name", "image"],
            "properties": {
                "name": _TEXT,
                "image": _TEXT,
                "env": _NAMED,
                "ports": {"type": "array"},
                "securityContext": {"type": "object"},
                "volumeMounts": _NAMED,
            },
        }
    ),
]
PodTemplate = Annotated[
    dict[str, Any],
    AfterValidator(_check_patch),
    Field(
        json_schema_extra={
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "containers": _NAMED,
                        "initContainers": _NAMED,
                        "dnsConfig": {"type": "object"},
                        "hostAliases": {"type": "array", "items": {"type": "object"}},
                        "schedulerName": _TEXT,
                    },
                }
            }
        }
    ),
]


class ImagePullSecret(Values):
    """A Secret with registry credentials."""

    name: ObjectName
    """Name of the Secret."""


class KeySelector(Values):
    """One key of a Secret or ConfigMap."""

    name: ObjectName
    """Name of the object."""
    key: SecretKeyName
    """Key in it."""
    optional: bool | None = None
    """Start the pod without the key, too."""


class FieldSelector(Values):
    """A field of the pod."""

    field_path: str
    """Path: `metadata.name`, `status.podIP`."""
    api_version: str | None = None
    """API version of the path."""


class ResourceSelector(Values):
    """A resource of the container."""

    resource: str
    """Resource: `limits.memory`."""
    container_name: str | None = None
    """Container; the one that has the variable when absent."""
    divisor: Text | None = None
    """Unit of the value."""


class EnvSource(Values):
    """Source of a variable: one of these."""

    secret_key_ref: KeySelector | None = None
    """Key of a Secret."""
    config_map_key_ref: KeySelector | None = None
    """Key of a ConfigMap."""
    field_ref: FieldSelector | None = None
    """Field of the pod."""
    resource_field_ref: ResourceSelector | None = None
    """Resource of the container."""


class EnvVar(Values):
    """An environment variable: `value` or `valueFrom`."""

    name: EnvName
    """Name."""
    value: Text | None = None
    """Value."""
    value_from: EnvSource | None = None
    """Source of the value."""


class EnvFromObject(Values):
    """A Secret or ConfigMap."""

    name: ObjectName
    """Name."""
    optional: bool | None = None
    """Start the pod without the object, too."""


class EnvFrom(Values):
    """All keys of a Secret or ConfigMap as variables."""

    prefix: str | None = None
    """Text before each key."""
    secret_ref: EnvFromObject | None = None
    """Secret."""
    config_map_ref: EnvFromObject | None = None
    """ConfigMap."""


class VolumeMount(Values):
    """A volume of `extraVolumes` in the container."""

    name: VolumeName
    """Name of the volume."""
    mount_path: str
    """Absolute path in the container."""
    sub_path: str | None = None
    """Path in the volume."""
    sub_path_expr: str | None = None
    """Path in the volume, with variables."""
    read_only: bool | None = None
    """Mount without write access."""


class TopologySpread(Values):
    """One topology spread constraint."""

    topology_key: LabelKey
    """Label of nodes that names the domain: `topology.kubernetes.io/zone`."""
    max_skew: Annotated[int, Field(ge=1)]
    """Number of pods that one domain may have more than another."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """What the scheduler does with a pod that breaks the constraint."""
    label_selector: dict[str, Any] | None = None
    """Pods to count; the chart's pods of this kind when absent."""
    match_label_keys: list[LabelKey] | None = None
    """Only pods with the same value of these labels count."""
    min_domains: Annotated[int, Field(ge=1)] | None = None
    """Minimum number of domains."""
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes outside the pod's node affinity count."""
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes with taints that the pod does not tolerate count."""


class PodSettings(Values):
    """Settings that every kind of pod has, in addition to its own."""

    pod_labels: Labels = {}
    """Additional labels of the pods. Labels that the chart or KubeRay owns are refused."""
    pod_annotations: Annotations = {}
    """Additional annotations of the pods."""
    affinity: Affinity = {}
    """Affinity of the pods, as Kubernetes defines it."""
    topology_spread_constraints: list[TopologySpread] = []
    """Additional topology spread constraints. Without `labelSelector` they count the pods of this kind."""
    extra_env: list[EnvVar] = []
    """Additional environment variables of the main container, with `value` or `valueFrom`."""
    extra_env_from: list[EnvFrom] = []
    """Secrets and ConfigMaps whose keys become environment variables. Variables of the chart take precedence."""
    extra_volumes: list[Volume] = []
    """Additional volumes. The chart refuses hostPath and all other types that Pod Security `restricted` refuses."""
    extra_volume_mounts: list[VolumeMount] = []
    """Mounts of `extraVolumes` in the main container."""
    extra_containers: list[Container] = []
    """Additional containers, as Kubernetes defines them. The chart sets their security context, and refuses what Pod
    Security `restricted` refuses. They mount `extraVolumes` only."""
    init_containers: list[Container] = []
    """Additional init containers, after those of the chart; with `restartPolicy: Always` they run beside the pod."""
    pod_template: PodTemplate = {}
    """Strategic patch of the pod template: `dnsConfig`, `hostAliases`, `schedulerName`, probes. Requests and limits of
    ephemeral storage are part of it. Containers are merged by name. What could take a security setting away is
    refused."""
