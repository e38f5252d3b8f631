"""Objects of other kinds."""

from typing import Required

# pydantic needs it below Python 3.12, and brings it.
from typing_extensions import TypedDict

from rayhelm.live.cluster.shapes.base import (
    LiveConditions,
    LiveObject,
    LiveSelector,
    Name,
    Quantity,
    Texts,
    Time,
    Whole,
)


class LiveNodeSpec(TypedDict, total=False):
    unschedulable: bool
    taints: list[Texts]


class LiveNodeStatus(LiveConditions, total=False):
    allocatable: dict[str, Quantity]
    capacity: dict[str, Quantity]


class LiveNode(LiveObject, total=False):
    spec: LiveNodeSpec
    status: LiveNodeStatus


class LiveBackingService(TypedDict):
    namespace: Name
    name: Name


class LiveApiServiceSpec(TypedDict, total=False):
    service: LiveBackingService


class LiveApiService(LiveObject, total=False):
    spec: Required[LiveApiServiceSpec]
    status: LiveConditions


class LiveTarget(TypedDict, total=False):
    kind: str
    name: Required[str]


class LiveMetric(TypedDict):
    type: str


class LiveHpaSpec(TypedDict, total=False):
    scaleTargetRef: Required[LiveTarget]
    metrics: list[LiveMetric]


class LiveHorizontalPodAutoscaler(LiveObject, total=False):
    spec: Required[LiveHpaSpec]
    status: LiveConditions


class LiveTrigger(TypedDict, total=False):
    type: str
    metadata: Texts


class LiveScaledObjectSpec(TypedDict, total=False):
    scaleTargetRef: Required[LiveTarget]
    triggers: list[LiveTrigger]


class LiveScaledObject(LiveObject, total=False):
    spec: Required[LiveScaledObjectSpec]
    status: LiveConditions


class LiveCertificateStatus(LiveConditions, total=False):
    notAfter: Time
    renewalTime: Time


class LiveCertificate(LiveObject, total=False):
    status: LiveCertificateStatus


class LiveBudgetSpec(TypedDict, total=False):
    selector: LiveSelector
    minAvailable: Whole | str
    maxUnavailable: Whole | str


class LiveBudgetStatus(LiveConditions, total=False):
    disruptionsAllowed: Whole
    currentHealthy: Whole
    desiredHealthy: Whole


class LivePodDisruptionBudget(LiveObject, total=False):
    spec: Required[LiveBudgetSpec]
    status: LiveBudgetStatus


class LiveLimit(TypedDict, total=False):
    type: Required[str]
    min: dict[str, Quantity]


class LiveLimitRangeSpec(TypedDict):
    limits: list[LiveLimit]


class LiveLimitRange(LiveObject):
    spec: LiveLimitRangeSpec


class LiveQuotaSpec(TypedDict, total=False):
    hard: dict[str, Quantity]


class LiveResourceQuota(LiveObject):
    spec: LiveQuotaSpec


class LiveDeviceClassSpec(TypedDict, total=False):
    extendedResourceName: str


class LiveDeviceClass(LiveObject):
    spec: LiveDeviceClassSpec


class LiveInvolvedObject(TypedDict, total=False):
    kind: str
    namespace: Name
    name: str


class LiveEvent(LiveObject, total=False):
    type: str
    message: str
    lastTimestamp: Time
    eventTime: Time
    involvedObject: Required[LiveInvolvedObject]


class LiveClaimSpec(TypedDict, total=False):
    storageClassName: str
    accessModes: list[str]


class LiveClaimStatus(TypedDict, total=False):
    phase: str


class LivePersistentVolumeClaim(LiveObject, total=False):
    spec: Required[LiveClaimSpec]
    status: LiveClaimStatus


class LiveServiceSpec(TypedDict, total=False):
    selector: Texts
    clusterIP: str


class LiveServiceObject(LiveObject):
    spec: LiveServiceSpec


class LiveEndpointConditions(TypedDict, total=False):
    ready: bool


class LiveEndpoint(TypedDict, total=False):
    conditions: LiveEndpointConditions
    addresses: list[str]


class LiveEndpointSlice(LiveObject, total=False):
    endpoints: list[LiveEndpoint]


class LiveConfigMap(LiveObject, total=False):
    data: Texts
    binaryData: Texts


class LivePeer(TypedDict, total=False):
    podSelector: LiveSelector
    namespaceSelector: LiveSelector


class LivePort(TypedDict, total=False):
    port: Whole | str


LiveIngressRule = TypedDict("LiveIngressRule", {"from": list[LivePeer], "ports": list[LivePort]}, total=False)


class LiveNetworkPolicySpec(TypedDict, total=False):
    ingress: list[LiveIngressRule]


class LiveNetworkPolicy(LiveObject):
    spec: LiveNetworkPolicySpec
