"""The Ray cluster below a service: head, nodes, object store, tasks, actors, GCS."""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import POD, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "active_nodes",
    "actors",
    "component_memory",
    "control_loop_time",
    "cpu_usage",
    "disk_usage",
    "gcs_operation_time",
    "head_memory_ratio",
    "logical_gpu_ratio",
    "logical_gpus",
    "memory_kills",
    "memory_ratio",
    "memory_used",
    "network_receive_rate",
    "network_send_rate",
    "object_store_ratio",
    "placement_groups",
    "process_lag",
    "proxy_status",
    "spilled_bytes",
    "tasks",
    "worker_failures",
]

HEAD = 'IsHeadNode="true"'


@query(unit="bytes", idle="value")
def memory_used(scope: Scope, by: By = POD) -> str:
    """Memory of a Ray node; the container's, if it has a limit."""
    return blocks.gauge("ray_node_mem_used", scope, by=by)


@query(unit="ratio", idle="value")
def memory_ratio(scope: Scope, by: By = POD) -> str:
    """Used share of the memory of a Ray node."""
    return blocks.ratio(
        blocks.gauge("ray_node_mem_used", scope, by=by), blocks.gauge("ray_node_mem_total", scope, by=by)
    )


@query(unit="ratio", idle="value")
def head_memory_ratio(scope: Scope, by: By = POD) -> str:
    """Used share of the memory of the head."""
    used = blocks.gauge("ray_node_mem_used", scope, HEAD, by=by)
    return blocks.ratio(used, blocks.gauge("ray_node_mem_total", scope, HEAD, by=by))


@query(unit="bytes", idle="value")
def component_memory(scope: Scope, by: By = (*POD, "Component")) -> str:
    """Memory of Ray's components, without shared memory. `Component` is the title of a process without its method."""
    resident = blocks.gauge("ray_component_rss_bytes", scope, by=by)
    used = f"{resident} - {blocks.gauge('ray_component_shared_bytes', scope, by=by)}"
    if "Component" not in by:
        return used
    # A replica has a title of its own while it answers: the deployment, an id and the method. The copy in `title` keeps
    # the series apart until they are summed.
    named = f'label_replace({used}, "title", "$1", "Component", "(.+)")'
    named = f'label_replace({named}, "Component", "ray::ServeReplica", "Component", "(?i)ray::serve_?replica.*")'
    return blocks.aggregate("sum", f'label_replace({named}, "Component", "$1", "Component", "(ray::[A-Za-z_]+).*")', by)


@query(unit="ratio", idle="value")
def cpu_usage(scope: Scope, by: By = POD) -> str:
    """Used share of the CPU of a Ray node."""
    return blocks.gauge("ray_node_cpu_utilization", scope, by=by, operator="max")


@query(unit="ratio", idle="value")
def disk_usage(scope: Scope, by: By = POD) -> str:
    """Used share of the disk of a Ray node."""
    return blocks.gauge("ray_node_disk_utilization_percentage", scope, by=by, operator="max")


@query(unit="bytes/s", idle="value")
def network_send_rate(scope: Scope, by: By = POD) -> str:
    """Bytes per second that a Ray node sends."""
    return blocks.gauge("ray_node_network_send_speed", scope, by=by)


@query(unit="bytes/s", idle="value")
def network_receive_rate(scope: Scope, by: By = POD) -> str:
    """Bytes per second that a Ray node receives."""
    return blocks.gauge("ray_node_network_receive_speed", scope, by=by)


@query(unit="ratio", idle="value")
def object_store_ratio(scope: Scope, by: By = POD) -> str:
    """Used share of the object store of a Ray node."""
    used = blocks.gauge("ray_object_store_used_memory", scope, by=by)
    free = blocks.gauge("ray_object_store_available_memory", scope, by=by)
    return blocks.ratio(used, f"({used} + {free})")


@query(unit="bytes", idle="value")
def spilled_bytes(scope: Scope, by: By = POD) -> str:
    """Objects that the object store moved to the disk."""
    return blocks.gauge("ray_object_store_memory", scope, 'Location="SPILLED"', by=by)


@query(unit="nodes", idle="value")
def active_nodes(scope: Scope, by: By = (*SERVICE, "node_type")) -> str:
    """Nodes of a Ray cluster."""
    return blocks.gauge("ray_cluster_active_nodes", scope, by=by)


@query(unit="gpus", idle="value")
def logical_gpus(scope: Scope, by: By = (*SERVICE, "State")) -> str:
    """GPUs of a Ray cluster that replicas use (`USED`), and that are free (`AVAILABLE`). No data without GPUs."""
    return blocks.gauge("ray_resources", scope, 'Name="GPU"', by=by)


@query(unit="ratio", idle="value")
def logical_gpu_ratio(scope: Scope, by: By = SERVICE) -> str:
    """Share of the GPUs of a Ray cluster that replicas use. No data without GPUs."""
    used = blocks.gauge("ray_resources", scope, 'Name="GPU"', 'State="USED"', by=by)
    return blocks.ratio(used, blocks.gauge("ray_resources", scope, 'Name="GPU"', by=by))


@query(unit="count", idle="value")
def actors(scope: Scope, by: By = (*SERVICE, "State")) -> str:
    """Actors by state."""
    return blocks.gauge("ray_actors", scope, by=by)


@query(unit="count", idle="value")
def tasks(scope: Scope, by: By = (*SERVICE, "State")) -> str:
    """Tasks by state."""
    return blocks.gauge("ray_tasks", scope, by=by)


@query(unit="count", idle="value")
def placement_groups(scope: Scope, by: By = (*SERVICE, "State")) -> str:
    """Placement groups by state."""
    return blocks.gauge("ray_gcs_placement_group_count", scope, by=by)


@query(unit="count", idle="zero", first=True)
def memory_kills(scope: Scope, window: str = "15m", by: By = SERVICE) -> str:
    """Workers in the window that Ray killed because a node ran out of memory."""
    return blocks.increase("ray_memory_manager_worker_eviction_total", scope, window, by=by)


@query(unit="count", idle="zero", first=True)
def worker_failures(scope: Scope, window: str = "15m", by: By = SERVICE) -> str:
    """Ray workers in the window that failed unexpectedly."""
    return blocks.increase("ray_node_manager_unexpected_worker_failure_total", scope, window, by=by)


@query(unit="seconds", idle="no data")
def gcs_operation_time(scope: Scope, window: str = WINDOW, by: By = (*SERVICE, "Operation"), q: float = 0.95) -> str:
    """Quantile of the time of an operation of the GCS storage."""
    return blocks.quantile(q, "ray_gcs_storage_operation_latency_ms", scope, window, by=by)


@query(unit="seconds", idle="value")
def process_lag(scope: Scope, by: By = (*SERVICE, "Name")) -> str:
    """Time that a task waits in the event loop of a Ray process, of the slowest one."""
    return blocks.gauge("ray_io_context_event_loop_lag_ms", scope, by=by, operator="max")


@query(unit="seconds", idle="value")
def control_loop_time(scope: Scope, by: By = SERVICE) -> str:
    """Duration of the last control loop of the Serve controller."""
    return blocks.gauge("ray_serve_controller_control_loop_duration_s", scope, by=by, operator="max")


@query(unit="state", idle="value")
def proxy_status(scope: Scope, by: By = (*SERVICE, "node_ip_address")) -> str:
    """Status of a Serve proxy: 2 HEALTHY, 1 STARTING, 3 UNHEALTHY, 4 DRAINING, 5 DRAINED."""
    return blocks.gauge("ray_serve_proxy_status", scope, by=by, operator="max")
