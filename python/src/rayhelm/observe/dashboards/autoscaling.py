"""Autoscaling: wanted and healthy replicas, bounds, signals, cold starts, Ray nodes."""

from rayhelm.observe.dashboard_model import (
    Column,
    Dashboard,
    Row,
    Stat,
    StateTimeline,
    Table,
    TimeSeries,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import ray_cluster, recorded, scaling, traffic
from rayhelm.observe.states import DEPLOYMENT_STATES

__all__ = ["DASHBOARD"]

DEPLOYMENT = "{{application}} {{deployment}}"
"""Each application has an `OpenAiIngress`."""

NOW = Row(
    title="Now",
    panels=(
        Stat(
            title="Desired by the policy",
            description="Replicas that the autoscaling policy asks for, before the bounds, of all deployments.",
            thresholds=informational(),
            lines=(line(scaling.desired_replicas, by=()),),
        ),
        Stat(
            title="Target",
            description="Replicas that Serve wants after the bounds, of all deployments.",
            thresholds=informational(),
            lines=(line(scaling.target_replicas, by=()),),
        ),
        Stat(
            title="Healthy",
            description="Replicas whose health check passes, of all deployments.",
            thresholds=informational(),
            lines=(line(scaling.healthy_replicas, by=()),),
        ),
        Stat(
            title="Missing",
            description="Replicas that Serve wants and that are not healthy. They start, or there is no GPU for them.",
            thresholds=rising(1, 2),
            lines=(line(scaling.missing_replicas, by=()),),
            runbook="ScalingStuck",
        ),
        Stat(
            title="Ray nodes that start",
            description="Ray nodes that the autoscaler asked for and that have not started. No data without Ray's "
            "autoscaler.",
            thresholds=rising(1, 4),
            no_value="no autoscaler",
            lines=(line(scaling.pending_nodes, by=()),),
            runbook="ScalingStuck",
        ),
        Stat(
            title="Failed node launches, 1 h",
            description="Ray nodes of the last hour that could not be created. No data without Ray's autoscaler.",
            thresholds=rising(1, 3),
            no_value="no autoscaler",
            lines=(line(scaling.failed_node_launches, by=(), window="1h"),),
            runbook="ScalingStuck",
        ),
    ),
)

DECISIONS = Row(
    title="Decisions",
    panels=(
        TimeSeries(
            title="Replicas and bounds",
            description="What the policy asks for, what Serve wants within the bounds, and what is healthy. Dashed: "
            "the bounds of the autoscaling. Desired above target means that the upper bound limits the service.",
            width=16,
            height=9,
            is_stepped=True,
            lines=(
                line(scaling.desired_replicas, f"desired {DEPLOYMENT}"),
                line(scaling.target_replicas, f"target {DEPLOYMENT}"),
                line(scaling.healthy_replicas, f"healthy {DEPLOYMENT}"),
                line(recorded.planned_min_replicas, "min {{model_name}}", is_planned=True),
                line(recorded.planned_max_replicas, "max {{model_name}}", is_planned=True),
            ),
            runbook="ScalingStuck",
        ),
        TimeSeries(
            title="Which signal decides",
            description="Each signal divided by its limit; the highest one above 100 % asks for more replicas. "
            "Load: requests per replica, the only signal of Ray's own policy. Queue and late tokens: used by the "
            "policy `engine-queue`.",
            thresholds=rising(1, 2),
            shows_thresholds=True,
            height=9,
            lines=(
                line(scaling.load_signal, f"load {DEPLOYMENT}"),
                line(scaling.queue_signal, f"queue {DEPLOYMENT}"),
                line(recorded.latency_signal, "late first tokens {{model_name}}"),
            ),
            runbook="QueueGrowing",
        ),
        TimeSeries(
            title="Requests per replica",
            description="Requests per wanted replica as the autoscaler sees them, averaged over its look-back "
            "period. Dashed: its target.",
            lines=(
                line(scaling.requests_per_replica, DEPLOYMENT),
                line(scaling.target_requests_per_replica, f"target {DEPLOYMENT}", is_planned=True),
            ),
        ),
        TimeSeries(
            title="Needed replicas",
            description="Requests divided by the target per replica: the input of Ray's own rule, before its "
            "delays. Above the target replicas for long: the delays are too long or replicas are missing.",
            lines=(
                line(scaling.needed_replicas, f"needed {DEPLOYMENT}"),
                line(scaling.target_replicas, f"target {DEPLOYMENT}"),
            ),
        ),
        TimeSeries(
            title="Requests",
            description="HTTP requests per second, and the rate for which the plan was made as a dashed line.",
            lines=(
                line(traffic.request_rate, "{{rayhelm_dev_service}}"),
                line(recorded.planned_request_rate, "plan {{model_name}}", is_planned=True),
            ),
        ),
    ),
)

COLD_STARTS = Row(
    title="Cold starts",
    panels=(
        TimeSeries(
            title="Cold start time, p95 of a day",
            description="Time from the creation of a replica until it is ready, and the part of it in its "
            "constructor, which loads the weights. Values above 240 s are not resolved.",
            thresholds=rising(120, 240),
            no_value="no replica started",
            lines=(
                line(scaling.cold_start_time, f"ready {DEPLOYMENT}", window="1d"),
                line(scaling.initialization_time, f"constructor {DEPLOYMENT}", window="1d"),
            ),
            runbook="RayServiceStartStuck",
        ),
        TimeSeries(
            title="Starts of replicas, 1 h",
            description="Replicas that started in the last hour. Many starts without a change of load mean that "
            "replicas fail or that the autoscaling oscillates.",
            thresholds=rising(6, 20),
            lines=(line(scaling.replica_starts, DEPLOYMENT, window="1h"),),
            runbook="ScalingStuck",
        ),
        TimeSeries(
            title="Failed health checks, 15 min",
            description="Failed health checks of replicas in the last 15 minutes. Serve replaces a replica after "
            "several.",
            thresholds=rising(1, 3),
            lines=(line(scaling.health_check_failures, DEPLOYMENT, window="15m"),),
            runbook="EngineDead",
        ),
        StateTimeline(
            title="Status of deployments",
            description="UPSCALING and DOWNSCALING show the changes of the number of replicas, UPDATING those of "
            "the configuration.",
            thresholds=informational(),
            states=DEPLOYMENT_STATES,
            lines=(line(scaling.deployment_status, f"{{{{rayhelm_dev_service}}}} {DEPLOYMENT}"),),
            runbook="ScalingStuck",
        ),
        TimeSeries(
            title="Ray nodes",
            description="Active nodes of the Ray clusters by type, and nodes that start. No data without "
            "Ray's autoscaler.",
            no_value="no autoscaler",
            width=12,
            height=7,
            is_stepped=True,
            lines=(
                line(ray_cluster.active_nodes, "{{node_type}} {{rayhelm_dev_service}}"),
                line(scaling.pending_nodes, "starts: {{NodeType}} {{rayhelm_dev_service}}"),
            ),
        ),
        Table(
            title="Deployments",
            description="The latest values of each deployment.",
            thresholds=informational(),
            columns=(
                Column(header="Service", label="rayhelm_dev_service", link="service"),
                Column(header="Application", label="application"),
                Column(header="Deployment", label="deployment"),
                Column(header="Status", line=line(scaling.deployment_status), states=DEPLOYMENT_STATES),
                Column(header="Desired", line=line(scaling.desired_replicas)),
                Column(header="Target", line=line(scaling.target_replicas)),
                Column(header="Healthy", line=line(scaling.healthy_replicas)),
                Column(header="Missing", line=line(scaling.missing_replicas), thresholds=rising(1, 2)),
                Column(header="Requests per replica", line=line(scaling.requests_per_replica)),
            ),
        ),
    ),
)

DASHBOARD = Dashboard(
    name="autoscaling",
    title="rayhelm: Autoscaling",
    description="Desired, target and healthy replicas with their bounds, the signals that decide, and cold starts.",
    time_range="now-3h",
    rows=(NOW, DECISIONS, COLD_STARTS),
)
