"""RayClusters and RayServices."""

from typing import Required

# pydantic needs it below Python 3.12, and brings it.
from typing_extensions import TypedDict

from rayhelm.live.cluster.shapes.base import LiveConditions, LiveObject, Quantity, Whole
from rayhelm.live.cluster.shapes.pods import LiveStartParameters, LiveTemplate


class LiveRayGroup(TypedDict, total=False):
    template: Required[LiveTemplate]
    rayStartParams: LiveStartParameters
    resources: dict[str, Quantity]


class LiveWorkerGroup(LiveRayGroup, total=False):
    groupName: Required[str]
    replicas: Whole
    minReplicas: Whole
    maxReplicas: Whole
    numOfHosts: Whole


class LiveRayClusterSpec(TypedDict, total=False):
    headGroupSpec: Required[LiveRayGroup]
    workerGroupSpecs: list[LiveWorkerGroup]
    rayVersion: str
    suspend: bool
    enableInTreeAutoscaling: bool


class LiveRayClusterStatus(LiveConditions, total=False):
    desiredWorkerReplicas: Whole
    readyWorkerReplicas: Whole


class LiveRayCluster(LiveObject, total=False):
    spec: Required[LiveRayClusterSpec]
    status: LiveRayClusterStatus


class LiveUpgradeStrategy(TypedDict, total=False):
    type: str


class LiveRayServiceSpec(TypedDict, total=False):
    rayClusterConfig: Required[LiveRayClusterSpec]
    serveConfigV2: str
    upgradeStrategy: LiveUpgradeStrategy


class LiveServeDeployment(TypedDict, total=False):
    status: str
    message: str


class LiveServeApplication(LiveServeDeployment, total=False):
    serveDeploymentStatuses: dict[str, LiveServeDeployment]


class LiveServiceStatus(TypedDict, total=False):
    rayClusterName: str
    applicationStatuses: dict[str, LiveServeApplication]


class LiveRayServiceStatus(LiveConditions, total=False):
    observedGeneration: Whole
    activeServiceStatus: LiveServiceStatus
    pendingServiceStatus: LiveServiceStatus


class LiveRayService(LiveObject, total=False):
    spec: Required[LiveRayServiceSpec]
    status: LiveRayServiceStatus
