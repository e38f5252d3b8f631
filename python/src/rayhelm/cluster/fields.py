"""Types of the fields that rayhelm reads from live objects.

An API server checks its own kinds, but not the texts inside them, and a CRD may be of another version. Every object is
parsed once, when it is read: code that reads these fields never meets another type. Other fields stay as they are.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Required

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config

# pydantic needs it below Python 3.12, and brings it.
from typing_extensions import TypedDict

from rayhelm.cluster.kinds import Kind
from rayhelm.errors import RayhelmError

__all__ = ["MalformedError", "describe_object", "parse_object", "parse_objects"]

Object = dict[str, Any]
_SIZE = 80


class MalformedError(RayhelmError):
    """A field of a live object has another type than rayhelm reads."""

    def __init__(self, item: Any, kind: Kind, problem: str) -> None:
        self.object, self.problem = describe_object(item, kind.name), _as_text(problem)
        super().__init__(f"{self.object}: {problem}")


def parse_object(kind: Kind, item: Any) -> Object:
    """Return an object without nulls, which mean the same as missing fields. Raises MalformedError."""
    try:
        return dict(_adapter(kind.name).validate_python(_drop_nulls(item)))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(str(part)[:_SIZE] for part in first["loc"])
        raise MalformedError(item, kind, f"{path}: {first['msg'][0].lower()}{first['msg'][1:]}".lstrip(": ")) from None
    except RecursionError:
        raise MalformedError(item, kind, "it has too many levels") from None


def parse_objects(kind: Kind, items: Iterable[Any]) -> tuple[list[Object], list[MalformedError]]:
    """Return the objects, and the errors of those with a field of another type."""
    good, malformed = list[Object](), list[MalformedError]()
    for item in items:
        try:
            good.append(parse_object(kind, item))
        except MalformedError as error:
            malformed.append(error)
    return good, malformed


def describe_object(item: Any, kind: str) -> str:
    """Return `KIND NAMESPACE/NAME` as far as an object of any form has them."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    names = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, Mapping) else []
    found = [_as_text(name[:253]) for name in names if isinstance(name, str) and name]
    return f"{kind} {'/'.join(found)}" if found else f"{kind} without a name"


def _as_text(text: str) -> str:
    """Return a text that can be written: JSON may have half of a character."""
    return text.encode("utf-8", "replace").decode()


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_drop_nulls(item) for item in value]
    return value


def _check_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without a time zone")
    return text


_Time = Annotated[str, AfterValidator(_check_time)]
_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_QUANTITY = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?$"
_Quantity = Annotated[str, Field(pattern=_QUANTITY)] | _Whole | Annotated[float, Field(allow_inf_nan=False)]
"""`200m`, `256Mi` or 2."""
_Name = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
"""Name of another object; commands of fixes and paths have it. A CRD with a pod template sets it to an empty text."""
_Texts = dict[str, str]


class _Manager(TypedDict, total=False):
    manager: str


class _Metadata(TypedDict, total=False):
    name: Required[Annotated[str, Field(min_length=1)]]
    namespace: str
    labels: _Texts
    annotations: _Texts
    generation: _Whole
    creationTimestamp: _Time
    managedFields: list[_Manager]


class _Condition(TypedDict, total=False):
    type: Required[str]
    status: str
    reason: str
    message: str
    lastTransitionTime: _Time


class _Conditions(TypedDict, total=False):
    conditions: list[_Condition]


class _AnyObject(TypedDict):
    """Objects of which only the metadata is read."""

    metadata: _Metadata


class _Expression(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: list[str]


class _Selector(TypedDict, total=False):
    matchLabels: _Texts
    matchExpressions: list[_Expression]


class _KeyReference(TypedDict, total=False):
    name: _Name
    key: str
    optional: bool


class _Item(TypedDict, total=False):
    key: Required[str]
    path: str


class _MountedSecret(TypedDict, total=False):
    name: _Name
    secretName: _Name
    items: list[_Item]
    optional: bool


class _MountedConfigMap(TypedDict, total=False):
    name: Required[_Name]
    items: list[_Item]


class _Source(TypedDict, total=False):
    secret: _MountedSecret
    configMap: _MountedConfigMap


class _Projected(TypedDict, total=False):
    sources: list[_Source]


class _Volume(_Source, total=False):
    projected: _Projected


class _ValueFrom(TypedDict, total=False):
    secretKeyRef: _KeyReference


class _Variable(TypedDict, total=False):
    name: str
    value: str
    valueFrom: _ValueFrom


class _Variables(TypedDict, total=False):
    secretRef: _KeyReference


class _Container(TypedDict, total=False):
    name: str
    image: str
    args: list[str]
    env: list[_Variable]
    envFrom: list[_Variables]


class _Reference(TypedDict, total=False):
    name: _Name


class _PodSpec(TypedDict, total=False):
    containers: Required[Annotated[list[_Container], Field(min_length=1)]]
    initContainers: list[_Container]
    volumes: list[_Volume]
    imagePullSecrets: list[_Reference]
    nodeName: str


class _TemplateMetadata(TypedDict, total=False):
    labels: _Texts


class _Template(TypedDict, total=False):
    metadata: _TemplateMetadata
    spec: Required[_PodSpec]


class _Waiting(TypedDict, total=False):
    reason: str
    message: str


class _Terminated(TypedDict, total=False):
    reason: str
    exitCode: _Whole


class _ContainerState(TypedDict, total=False):
    waiting: _Waiting
    terminated: _Terminated


class _ContainerStatus(TypedDict, total=False):
    name: Required[str]
    restartCount: _Whole
    state: _ContainerState
    lastState: _ContainerState


class _PodStatus(_Conditions, total=False):
    phase: str
    reason: str
    message: str
    containerStatuses: list[_ContainerStatus]
    initContainerStatuses: list[_ContainerStatus]


class _Pod(_AnyObject, total=False):
    spec: Required[_PodSpec]
    status: _PodStatus


class _DeploymentSpec(TypedDict, total=False):
    replicas: _Whole
    selector: Required[_Selector]
    template: Required[_Template]


class _DeploymentStatus(_Conditions, total=False):
    availableReplicas: _Whole


class _Deployment(_AnyObject, total=False):
    spec: Required[_DeploymentSpec]
    status: _DeploymentStatus


class _JobSpec(TypedDict):
    template: _Template


class _Job(_AnyObject, total=False):
    spec: Required[_JobSpec]
    status: _Conditions


_StartParameters = TypedDict("_StartParameters", {"num-gpus": _Quantity}, total=False)


class _RayGroup(TypedDict, total=False):
    template: Required[_Template]
    rayStartParams: _StartParameters
    resources: dict[str, _Quantity]


class _WorkerGroup(_RayGroup, total=False):
    groupName: Required[str]
    replicas: _Whole
    minReplicas: _Whole
    maxReplicas: _Whole
    numOfHosts: _Whole


class _RayClusterSpec(TypedDict, total=False):
    headGroupSpec: Required[_RayGroup]
    workerGroupSpecs: list[_WorkerGroup]
    rayVersion: str
    suspend: bool
    enableInTreeAutoscaling: bool


class _RayClusterStatus(_Conditions, total=False):
    desiredWorkerReplicas: _Whole
    readyWorkerReplicas: _Whole


class _RayCluster(_AnyObject, total=False):
    spec: Required[_RayClusterSpec]
    status: _RayClusterStatus


class _UpgradeStrategy(TypedDict, total=False):
    type: str


class _RayServiceSpec(TypedDict, total=False):
    rayClusterConfig: Required[_RayClusterSpec]
    serveConfigV2: str
    upgradeStrategy: _UpgradeStrategy


class _ServeDeployment(TypedDict, total=False):
    status: str
    message: str


class _ServeApplication(_ServeDeployment, total=False):
    serveDeploymentStatuses: dict[str, _ServeDeployment]


class _ServiceStatus(TypedDict, total=False):
    rayClusterName: str
    applicationStatuses: dict[str, _ServeApplication]


class _RayServiceStatus(_Conditions, total=False):
    observedGeneration: _Whole
    activeServiceStatus: _ServiceStatus
    pendingServiceStatus: _ServiceStatus


class _RayService(_AnyObject, total=False):
    spec: Required[_RayServiceSpec]
    status: _RayServiceStatus


class _NodeSpec(TypedDict, total=False):
    unschedulable: bool
    taints: list[_Texts]


class _NodeStatus(_Conditions, total=False):
    allocatable: dict[str, _Quantity]
    capacity: dict[str, _Quantity]


class _Node(_AnyObject, total=False):
    spec: _NodeSpec
    status: _NodeStatus


class _BackingService(TypedDict):
    namespace: _Name
    name: _Name


class _ApiServiceSpec(TypedDict, total=False):
    service: _BackingService


class _ApiService(_AnyObject, total=False):
    spec: Required[_ApiServiceSpec]
    status: _Conditions


class _Target(TypedDict, total=False):
    kind: str
    name: Required[str]


class _Metric(TypedDict):
    type: str


class _HpaSpec(TypedDict, total=False):
    scaleTargetRef: Required[_Target]
    metrics: list[_Metric]


class _HorizontalPodAutoscaler(_AnyObject, total=False):
    spec: Required[_HpaSpec]
    status: _Conditions


class _Trigger(TypedDict, total=False):
    type: str
    metadata: _Texts


class _ScaledObjectSpec(TypedDict, total=False):
    scaleTargetRef: Required[_Target]
    triggers: list[_Trigger]


class _ScaledObject(_AnyObject, total=False):
    spec: Required[_ScaledObjectSpec]
    status: _Conditions


class _CertificateStatus(_Conditions, total=False):
    notAfter: _Time
    renewalTime: _Time


class _Certificate(_AnyObject, total=False):
    status: _CertificateStatus


class _BudgetSpec(TypedDict, total=False):
    selector: _Selector
    minAvailable: _Whole | str
    maxUnavailable: _Whole | str


class _BudgetStatus(_Conditions, total=False):
    disruptionsAllowed: _Whole
    currentHealthy: _Whole
    desiredHealthy: _Whole


class _PodDisruptionBudget(_AnyObject, total=False):
    spec: Required[_BudgetSpec]
    status: _BudgetStatus


class _Limit(TypedDict, total=False):
    type: Required[str]
    min: dict[str, _Quantity]


class _LimitRangeSpec(TypedDict):
    limits: list[_Limit]


class _LimitRange(_AnyObject):
    spec: _LimitRangeSpec


class _QuotaSpec(TypedDict, total=False):
    hard: dict[str, _Quantity]


class _ResourceQuota(_AnyObject):
    spec: _QuotaSpec


class _DeviceClassSpec(TypedDict, total=False):
    extendedResourceName: str


class _DeviceClass(_AnyObject):
    spec: _DeviceClassSpec


class _InvolvedObject(TypedDict, total=False):
    kind: str
    namespace: _Name
    name: str


class _Event(_AnyObject, total=False):
    type: str
    message: str
    lastTimestamp: _Time
    eventTime: _Time
    involvedObject: Required[_InvolvedObject]


class _ClaimSpec(TypedDict, total=False):
    storageClassName: str
    accessModes: list[str]


class _ClaimStatus(TypedDict, total=False):
    phase: str


class _PersistentVolumeClaim(_AnyObject, total=False):
    spec: Required[_ClaimSpec]
    status: _ClaimStatus


class _ServiceSpec(TypedDict, total=False):
    selector: _Texts
    clusterIP: str


class _Service(_AnyObject):
    spec: _ServiceSpec


class _EndpointConditions(TypedDict, total=False):
    ready: bool


class _Endpoint(TypedDict, total=False):
    conditions: _EndpointConditions
    addresses: list[str]


class _EndpointSlice(_AnyObject, total=False):
    endpoints: list[_Endpoint]


class _ConfigMap(_AnyObject, total=False):
    data: _Texts
    binaryData: _Texts


class _Peer(TypedDict, total=False):
    podSelector: _Selector
    namespaceSelector: _Selector


class _Port(TypedDict, total=False):
    port: _Whole | str


_IngressRule = TypedDict("_IngressRule", {"from": list[_Peer], "ports": list[_Port]}, total=False)


class _NetworkPolicySpec(TypedDict, total=False):
    ingress: list[_IngressRule]


class _NetworkPolicy(_AnyObject):
    spec: _NetworkPolicySpec


_TYPES: Mapping[str, Any] = {
    "APIService": _ApiService,
    "Secret": _ConfigMap,
} | {
    each.__name__.removeprefix("_"): each
    for each in (
        _Certificate,
        _ConfigMap,
        _Deployment,
        _DeviceClass,
        _EndpointSlice,
        _Event,
        _HorizontalPodAutoscaler,
        _Job,
        _LimitRange,
        _NetworkPolicy,
        _Node,
        _PersistentVolumeClaim,
        _Pod,
        _PodDisruptionBudget,
        _RayCluster,
        _RayService,
        _ResourceQuota,
        _ScaledObject,
        _Service,
    )
}


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    # The types below it have the same configuration.
    return TypeAdapter(with_config(ConfigDict(strict=True, extra="allow"))(_TYPES.get(kind, _AnyObject)))
