"""Values of the chart `ray-service`: one release is one RayService and what belongs to it.

The one place where they are typed: `values.schema.json`, `values.yaml` and the README table are written from here.
A key of a section always has a default and so stands in values.yaml; entries of maps (`workerGroups.*`,
`serve.applications.*`) have required keys, and the chart completes the others from the same defaults.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.values.common.base import Name, Values
from rayhelm.values.common.labels import Annotations, Labels, ObjectName
from rayhelm.values.ray_service.cluster import Auth, GcsFaultTolerance, KubeRay, Ray, RayAutoscaler, Upgrade
from rayhelm.values.ray_service.groups import HeadPod, WorkerGroup
from rayhelm.values.ray_service.image import RayImage
from rayhelm.values.ray_service.network import Alias, RayNetworkPolicy
from rayhelm.values.ray_service.operations import HelmTest, PodDisruptionBudget, PodMonitor, ServiceAccount
from rayhelm.values.ray_service.serve import Serve
from rayhelm.values.ray_service.weights import WeightsVolume

__all__ = ["RayServiceValues"]


class RayServiceValues(Values):
    """A RayService with Ray Serve LLM and vLLM inside."""

    global_: Annotated[dict[str, Any], Field(alias="global")] = {}
    """Helm hands a parent chart's globals down here; this chart reads none of them."""
    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the RayService; empty for the release's. At most 47 characters, and never cut."""
    cluster_domain: ObjectName = "cluster.local"
    """DNS domain of the cluster, for the aliases."""
    tenant: Name | Literal[""] = ""
    """Owner, as a label on everything that is made; empty for none."""
    labels: Labels = {}
    """Labels of the RayService object; never of its pods, where a change builds a new cluster."""
    annotations: Annotations = {}
    """Annotations of the RayService object."""
    suspend: bool = False
    """Ends all pods and keeps the RayService; KubeRay 1.7.0."""
    kuberay: KubeRay = KubeRay()
    """The operator that reads the RayService."""
    ray: Ray = Ray()
    """The Ray in the image."""
    image: RayImage = RayImage()
    """The image of head and workers."""
    auth: Auth = Auth()
    """Authentication of Ray's own interfaces."""
    upgrade: Upgrade = Upgrade()
    """What a change of the cluster does."""
    serve: Serve = Serve()
    """What is served; edits of applications and logging are made in place."""
    head: HeadPod = HeadPod()
    """The head pod."""
    worker_groups: dict[Name, WorkerGroup] = {}
    """Worker pods by group, one group for each kind of card."""
    autoscaler: RayAutoscaler = RayAutoscaler()
    """Ray's autoscaler."""
    gcs_fault_tolerance: GcsFaultTolerance = GcsFaultTolerance()
    """Survival of a lost head."""
    weights: WeightsVolume = WeightsVolume()
    """Where the weights are."""
    network_policy: RayNetworkPolicy = RayNetworkPolicy()
    """Who may reach whom."""
    aliases: dict[Name, Alias] = {}
    """Names under which others find the endpoint (`whisper-predictor`)."""
    pod_monitor: PodMonitor = PodMonitor()
    """Scraping."""
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    """Budgets for drains."""
    service_account: ServiceAccount = ServiceAccount()
    """The identity of the pods."""
    test: HelmTest = HelmTest()
    """`helm test`."""
