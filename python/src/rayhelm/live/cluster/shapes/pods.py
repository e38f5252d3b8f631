"""Pods, and the objects that contain a pod template."""

from typing import Annotated, Required

from pydantic import Field

# pydantic needs it below Python 3.12, and brings it.
from typing_extensions import TypedDict

from rayhelm.live.cluster.shapes.base import LiveConditions, LiveObject, LiveSelector, Name, Quantity, Texts, Whole


class LiveKeyReference(TypedDict, total=False):
    name: Name
    key: str
    optional: bool


class LiveItem(TypedDict, total=False):
    key: Required[str]
    path: str


class LiveMountedSecret(TypedDict, total=False):
    name: Name
    secretName: Name
    items: list[LiveItem]
    optional: bool


class LiveMountedConfigMap(TypedDict, total=False):
    name: Required[Name]
    items: list[LiveItem]


class LiveSource(TypedDict, total=False):
    secret: LiveMountedSecret
    configMap: LiveMountedConfigMap


class LiveProjected(TypedDict, total=False):
    sources: list[LiveSource]


class LiveVolume(LiveSource, total=False):
    projected: LiveProjected


class LiveValueFrom(TypedDict, total=False):
    secretKeyRef: LiveKeyReference


class LiveVariable(TypedDict, total=False):
    name: str
    value: str
    valueFrom: LiveValueFrom


class LiveVariables(TypedDict, total=False):
    secretRef: LiveKeyReference


class LiveContainer(TypedDict, total=False):
    name: str
    image: str
    args: list[str]
    env: list[LiveVariable]
    envFrom: list[LiveVariables]


class LiveReference(TypedDict, total=False):
    name: Name


class LivePodSpec(TypedDict, total=False):
    containers: Required[Annotated[list[LiveContainer], Field(min_length=1)]]
    initContainers: list[LiveContainer]
    volumes: list[LiveVolume]
    imagePullSecrets: list[LiveReference]
    nodeName: str


class LiveTemplateMetadata(TypedDict, total=False):
    labels: Texts


class LiveTemplate(TypedDict, total=False):
    metadata: LiveTemplateMetadata
    spec: Required[LivePodSpec]


class LiveWaiting(TypedDict, total=False):
    reason: str
    message: str


class LiveTerminated(TypedDict, total=False):
    reason: str
    exitCode: Whole


class LiveContainerState(TypedDict, total=False):
    waiting: LiveWaiting
    terminated: LiveTerminated


class LiveContainerStatus(TypedDict, total=False):
    name: Required[str]
    restartCount: Whole
    state: LiveContainerState
    lastState: LiveContainerState


class LivePodStatus(LiveConditions, total=False):
    phase: str
    reason: str
    message: str
    containerStatuses: list[LiveContainerStatus]
    initContainerStatuses: list[LiveContainerStatus]


class LivePod(LiveObject, total=False):
    spec: Required[LivePodSpec]
    status: LivePodStatus


class LiveDeploymentSpec(TypedDict, total=False):
    replicas: Whole
    selector: Required[LiveSelector]
    template: Required[LiveTemplate]


class LiveDeploymentStatus(LiveConditions, total=False):
    availableReplicas: Whole


class LiveDeployment(LiveObject, total=False):
    spec: Required[LiveDeploymentSpec]
    status: LiveDeploymentStatus


class LiveJobSpec(TypedDict):
    template: LiveTemplate


class LiveJob(LiveObject, total=False):
    spec: Required[LiveJobSpec]
    status: LiveConditions


LiveStartParameters = TypedDict("LiveStartParameters", {"num-gpus": Quantity}, total=False)
