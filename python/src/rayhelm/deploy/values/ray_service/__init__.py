"""Values of the chart `ray-service`: one release is one RayService and the objects that belong to it.

`values.schema.json`, `values.yaml` and the table in the README are generated from these types. Each key of a section
has a default, so it is in values.yaml. Entries of maps (`workerGroups.*`, `serve.applications.*`) have required keys;
the chart completes the other keys from the same defaults.
"""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name
from rayhelm.deploy.values.common.globals import Globals
from rayhelm.deploy.values.common.labels import Annotations, Labels, ObjectName
from rayhelm.deploy.values.common.pods import ImagePullSecret
from rayhelm.deploy.values.common.release import ReleaseValues
from rayhelm.deploy.values.common.scraping import Scraping
from rayhelm.deploy.values.common.security import PodSecurityContext
from rayhelm.deploy.values.ray_service.cluster import Auth, GcsFaultTolerance, KubeRay, Ray, RayAutoscaler, Upgrade
from rayhelm.deploy.values.ray_service.groups import HeadPod, WorkerGroup
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.ray_service.logs import PodLogs
from rayhelm.deploy.values.ray_service.network import Alias, RayNetworkPolicy
from rayhelm.deploy.values.ray_service.operations import HelmTest, PodDisruptionBudget, ServiceAccount
from rayhelm.deploy.values.ray_service.serve import Serve
from rayhelm.deploy.values.ray_service.tracing import RayTracing
from rayhelm.deploy.values.ray_service.weights import WeightsVolume

__all__ = ["RayServiceValues"]


class RayServiceValues(ReleaseValues):
    """A RayService with Ray Serve LLM and vLLM inside."""

    global_: Annotated[Globals, Field(alias="global")] = Globals()
    """Globals of a parent chart: the registry of all images, and its credentials. Both change the Ray pods, so KubeRay
    starts a second Ray cluster."""
    common_labels: Labels = {}
    """Labels of every object of the release, in place of labels of the same name elsewhere in the values. Ray
    pods do not get them, because a change would start a second cluster: `podLabels` has those of pods."""
    common_annotations: Annotations = {}
    """Annotations of every object of the release, in place of annotations of the same name elsewhere in the values.
    Ray pods do not get them, because a change would start a second cluster: `podAnnotations` has those of pods."""
    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the RayService, at most 47 characters. Release name when empty."""
    cluster_domain: ObjectName = "cluster.local"
    """DNS domain of the cluster, for the aliases."""
    tenant: Name | Literal[""] = ""
    """Tenant that owns the release, as a label on all objects; none when empty."""
    labels: Labels = {}
    """Labels of the RayService object. Its pods do not get them, because a change would start a new cluster."""
    annotations: Annotations = {}
    """Annotations of the RayService object."""
    suspend: bool = False
    """Delete all pods and keep the RayService. Requires KubeRay 1.7.0."""
    kuberay: KubeRay = KubeRay()
    """KubeRay operator of the cluster."""
    ray: Ray = Ray()
    """Ray in the image."""
    image: RayImage = RayImage()
    """Image of head and workers."""
    image_pull_secrets: list[ImagePullSecret] = []
    """Secrets with registry credentials, for every pod."""
    pod_security_context: PodSecurityContext = PodSecurityContext(run_as_user=1000, run_as_group=100, fs_group=100)
    """User and groups of all pods. A change starts a second Ray cluster."""
    auth: Auth = Auth()
    """Authentication of Ray's dashboard, jobs and GCS."""
    upgrade: Upgrade = Upgrade()
    """What KubeRay does when pods change."""
    serve: Serve = Serve()
    """Ray Serve: HTTP proxy and applications. Edits of applications and logging apply in place."""
    head: HeadPod = HeadPod()
    """Head pod."""
    worker_groups: dict[Name, WorkerGroup] = {}
    """Worker groups by name, one for each kind of GPU."""
    autoscaler: RayAutoscaler = RayAutoscaler()
    """Ray's autoscaler."""
    gcs_fault_tolerance: GcsFaultTolerance = GcsFaultTolerance()
    """Fault tolerance of the head with Redis."""
    weights: WeightsVolume = WeightsVolume()
    """Volume of the model weights, and the Job that downloads them."""
    network_policy: RayNetworkPolicy = RayNetworkPolicy()
    """NetworkPolicies."""
    aliases: dict[Name, Alias] = {}
    """Other names of the endpoint, as Services of type ExternalName (`whisper-predictor`)."""
    scraping: Scraping = Scraping()
    """How Prometheus finds the pods."""
    tracing: RayTracing = RayTracing()
    """Traces of requests over OTLP."""
    logs: PodLogs = PodLogs()
    """Logs of the Ray pods. `serve.logging` has the format and the level of Ray Serve's."""
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    """PodDisruptionBudgets."""
    service_account: ServiceAccount = ServiceAccount()
    """ServiceAccount of the pods."""
    test: HelmTest = HelmTest()
    """Pod of `helm test`."""

    @property
    def runs_autoscaler(self) -> bool:
        """Whether the head has Ray's autoscaler. The chart derives the same."""
        scales = any(group.min_replicas != group.max_replicas for group in self.worker_groups.values())
        return self.autoscaler.enabled and (scales or self.upgrade.strategy == "NewClusterWithIncrementalUpgrade")
