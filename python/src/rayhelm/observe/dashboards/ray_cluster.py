"""The Ray cluster below each service: head, nodes, object store, GCS, restarts."""

from rayhelm.observe.dashboard_model import (
    Dashboard,
    Gauge,
    Row,
    Stat,
    StateTimeline,
    TimeSeries,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import kubernetes, ray_cluster
from rayhelm.observe.states import PROXY_STATES, YES_NO

__all__ = ["DASHBOARD"]

SERVICE, POD = "{{rayhelm_dev_service}}", "{{pod}}"

NOW = Row(
    title="Now",
    panels=(
        Gauge(
            title="Memory of the head",
            description="Used share of the memory of the head. If the kernel ends the head, the service is gone "
            "until a new one has started.",
            thresholds=rising(0.75, 0.9),
            width=6,
            height=5,
            lines=(line(ray_cluster.head_memory_ratio, SERVICE, by=("rayhelm_dev_service",)),),
            runbook="HeadMemoryHigh",
        ),
        Gauge(
            title="Fullest object store",
            description="Used share of the object store of the node that uses most. A full store moves objects to "
            "the disk.",
            thresholds=rising(0.7, 0.9),
            width=6,
            height=5,
            lines=(line(ray_cluster.object_store_ratio, SERVICE, by=("rayhelm_dev_service",)),),
        ),
        Stat(
            title="Nodes",
            description="Active nodes of the Ray clusters. No data without Ray's autoscaler.",
            thresholds=informational(),
            no_value="no autoscaler",
            height=5,
            lines=(line(ray_cluster.active_nodes, SERVICE, by=("rayhelm_dev_service",)),),
        ),
        Stat(
            title="Failed workers, 15 min",
            description="Ray workers that failed unexpectedly in the last 15 minutes.",
            thresholds=rising(1, 5),
            height=5,
            lines=(line(ray_cluster.worker_failures, by=(), window="15m"),),
            runbook="EngineDead",
        ),
        Stat(
            title="Memory kills, 15 min",
            description="Workers that Ray ended in the last 15 minutes because a node ran out of memory.",
            thresholds=rising(1, 3),
            height=5,
            lines=(line(ray_cluster.memory_kills, by=(), window="15m"),),
            runbook="HeadMemoryHigh",
        ),
    ),
)

NODES = Row(
    title="Nodes",
    panels=(
        TimeSeries(
            title="Memory by node",
            description="Used share of the memory of each Ray node; of the container, if it has a limit.",
            thresholds=rising(0.8, 0.92),
            shows_thresholds=True,
            maximum=1,
            lines=(line(ray_cluster.memory_ratio, POD),),
            runbook="HeadMemoryHigh",
        ),
        TimeSeries(
            title="Memory by component",
            description="Memory of Ray's components over all nodes, without shared memory. It shows which of them "
            "grows.",
            lines=(line(ray_cluster.component_memory, "{{Component}}", by=("Component",)),),
        ),
        TimeSeries(
            title="CPU by node",
            description="Used share of the CPU of each Ray node. An engine that waits for its CPU leaves the GPU idle.",
            thresholds=rising(0.8, 0.95),
            maximum=1,
            lines=(line(ray_cluster.cpu_usage, POD),),
        ),
        TimeSeries(
            title="Disk by node",
            description="Used share of the disk of each Ray node. Logs, spilled objects and weights fill it.",
            thresholds=rising(0.8, 0.95),
            shows_thresholds=True,
            maximum=1,
            lines=(line(ray_cluster.disk_usage, POD),),
        ),
        TimeSeries(
            title="Network by node",
            description="Bytes per second that each Ray node receives and sends. Pipeline parallelism and the load "
            "of weights use it.",
            lines=(
                line(ray_cluster.network_receive_rate, f"in {POD}"),
                line(ray_cluster.network_send_rate, f"out {POD}"),
            ),
        ),
        TimeSeries(
            title="Nodes by type",
            description="Active nodes of the Ray clusters by type. It falls when a node is lost or scaled down. "
            "No data without Ray's autoscaler.",
            no_value="no autoscaler",
            is_stepped=True,
            lines=(line(ray_cluster.active_nodes, "{{node_type}} {{rayhelm_dev_service}}"),),
        ),
    ),
)

STORE = Row(
    title="Object store, tasks and actors",
    panels=(
        TimeSeries(
            title="Object store by node",
            description="Used share of the object store of each node. Serving stores little: growth means that "
            "objects are not released.",
            thresholds=rising(0.7, 0.9),
            maximum=1,
            lines=(line(ray_cluster.object_store_ratio, POD),),
        ),
        TimeSeries(
            title="Spilled objects",
            description="Objects that the object store moved to the disk, because it was full.",
            thresholds=rising(1, 1_000_000_000),
            lines=(line(ray_cluster.spilled_bytes, POD),),
        ),
        TimeSeries(
            title="Actors",
            description="Actors by state. Replicas, proxies and the controller are actors; many in PENDING_CREATION "
            "wait for resources.",
            is_stepped=True,
            lines=(line(ray_cluster.actors, "{{State}}", by=("State",)),),
        ),
        TimeSeries(
            title="Tasks",
            description="Tasks by state. A growing number in PENDING_NODE_ASSIGNMENT waits for resources.",
            is_stepped=True,
            lines=(line(ray_cluster.tasks, "{{State}}", by=("State",)),),
        ),
        TimeSeries(
            title="Placement groups",
            description="Placement groups by state. Each replica has one; a pending one waits for GPUs.",
            is_stepped=True,
            lines=(line(ray_cluster.placement_groups, "{{State}}", by=("State",)),),
            runbook="ScalingStuck",
        ),
        TimeSeries(
            title="Failed workers and memory kills",
            description="Ray workers that failed unexpectedly, and workers that Ray ended for memory, in the last "
            "15 minutes.",
            thresholds=rising(1, 5),
            lines=(
                line(ray_cluster.worker_failures, f"failed {SERVICE}", window="15m"),
                line(ray_cluster.memory_kills, f"out of memory {SERVICE}", window="15m"),
            ),
            runbook="EngineDead",
        ),
    ),
)

CONTROL = Row(
    title="GCS, Serve controller and proxies",
    panels=(
        TimeSeries(
            title="GCS storage, p95",
            description="Time of operations of the GCS storage: the memory of the head, or Redis with fault tolerance.",
            thresholds=rising(0.1, 1),
            lines=(line(ray_cluster.gcs_operation_time, "{{Operation}}", by=("Operation",)),),
        ),
        TimeSeries(
            title="Lag of event loops",
            description="Time that a task waits in the event loops of Ray's processes, of the slowest one. A head "
            "without enough CPU has a high lag.",
            thresholds=rising(0.1, 1),
            lines=(line(ray_cluster.process_lag, "{{Name}}", by=("Name",)),),
        ),
        TimeSeries(
            title="Control loop of Serve",
            description="Duration of the last control loop of the Serve controller. Above a second, scaling and "
            "health checks are late.",
            thresholds=rising(0.5, 2),
            lines=(line(ray_cluster.control_loop_time, SERVICE),),
        ),
        StateTimeline(
            title="Serve proxies",
            description="Status of the Serve proxy of each node. A draining proxy gets no new requests.",
            thresholds=informational(),
            states=PROXY_STATES,
            lines=(line(ray_cluster.proxy_status, "{{rayhelm_dev_service}} {{node_ip_address}}"),),
        ),
        StateTimeline(
            title="Upgrades",
            description="RayServices that KubeRay upgrades: a second Ray cluster runs beside the first one.",
            thresholds=informational(),
            states=YES_NO,
            no_value="no upgrade",
            lines=(line(kubernetes.service_upgrading, "{{namespace}} {{name}}"),),
            runbook="UpgradeStuck",
        ),
    ),
)

PODS = Row(
    title="Pods",
    panels=(
        TimeSeries(
            title="Restarts of containers, 1 h",
            description="Restarts of containers in the last hour, from kube-state-metrics.",
            thresholds=rising(1, 3),
            no_value="no kube-state-metrics",
            lines=(line(kubernetes.container_restarts, "{{pod}} {{container}}", window="1h"),),
            runbook="NoReadyReplica",
        ),
        StateTimeline(
            title="Containers that the kernel ended",
            description="Containers whose last end was a memory limit (OOMKilled).",
            thresholds=rising(1, 2),
            width=8,
            height=8,
            states=YES_NO,
            no_value="none",
            lines=(line(kubernetes.out_of_memory_containers, "{{pod}} {{container}}"),),
            runbook="HeadMemoryHigh",
        ),
        TimeSeries(
            title="Pods that are not Ready",
            description="Pods that are not Ready, and pods that no node can take, by namespace.",
            thresholds=rising(1, 4),
            no_value="no kube-state-metrics",
            lines=(
                line(kubernetes.pods_not_ready, "not Ready {{namespace}}"),
                line(kubernetes.unschedulable_pods, "unschedulable {{namespace}}"),
            ),
            runbook="NoReadyReplica",
        ),
    ),
)

DASHBOARD = Dashboard(
    name="ray-cluster",
    title="rayhelm: Ray cluster",
    description="Head, nodes, object store, GCS, Serve controller and pods of the Ray clusters below the services.",
    rows=(NOW, NODES, STORE, CONTROL, PODS),
)
