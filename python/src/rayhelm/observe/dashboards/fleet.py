"""All services: alerts, objectives, upgrades, Kubernetes objects, costs, GPUs."""

from rayhelm.observe.dashboard_model import (
    BarGauge,
    Column,
    Dashboard,
    Gauge,
    Row,
    Stat,
    StateTimeline,
    Table,
    TimeSeries,
    falling,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import (
    gpu,
    kubernetes,
    labels,
    latency,
    queues,
    ray_cluster,
    recorded,
    scaling,
    slo,
    traffic,
)
from rayhelm.observe.rules.alerts import load_alerts
from rayhelm.observe.states import APPLICATION_STATES, YES_NO

__all__ = ["DASHBOARD"]

SERVICE, MODEL = "{{rayhelm_dev_service}}", "{{model_name}}"
OF_SERVICE = f"{MODEL} {SERVICE}"
"""Availability at the gateway has no service."""
NO_RULES = "no recording rules"
ALERTS = tuple(name for name, alert in load_alerts().items() if not alert.always)

NOW = Row(
    title="Now",
    panels=(
        Stat(
            title="Requests",
            description="HTTP requests per second at the Serve proxies of all services, without health checks.",
            thresholds=informational(),
            lines=(line(traffic.request_rate, by=()),),
        ),
        Stat(
            title="Generated tokens",
            description="Tokens per second that the engines of all services generate.",
            thresholds=informational(),
            lines=(line(traffic.generated_token_rate, by=()),),
        ),
        Stat(
            title="Availability, 1 h",
            description="Share of HTTP requests of all services without a server error (5xx) in the last hour.",
            thresholds=falling(0.99, 0.999),
            decimals=2,
            lines=(line(slo.availability, by=(), window="1h"),),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        Stat(
            title="Cost per hour",
            description="Cost of all GPUs with a price, and the part of it without a request in flight: of GPUs "
            "without a replica, and of replicas without a request.",
            thresholds=informational(),
            no_value=NO_RULES,
            lines=(
                line(recorded.service_cost_per_hour, "all", by=()),
                line(recorded.idle_service_cost_per_hour, "idle", by=()),
            ),
        ),
        Stat(
            title="Missing replicas",
            description="Replicas that Serve wants and that are not healthy, of all services.",
            thresholds=rising(1, 4),
            lines=(line(scaling.missing_replicas, by=()),),
            runbook="NoReadyReplica",
        ),
        Gauge(
            title="GPUs that replicas use",
            description="Share of the GPUs of the running Ray clusters that replicas use. The rest is paid for and "
            "idle.",
            thresholds=falling(0.5, 0.8),
            height=4,
            no_value="no GPU",
            lines=(line(ray_cluster.logical_gpu_ratio, by=()),),
            runbook="GpuWithoutReplica",
        ),
    ),
)

ALERTS_ROW = Row(
    title="Alerts",
    panels=(
        Table(
            title="Firing alerts",
            description="Alerts of rayhelm that fire. A click on a name opens its runbook.",
            thresholds=informational(),
            height=5,
            no_value="none, or the rules of chart platform are not installed",
            columns=(
                Column(header="Alert", label="alertname", opens_runbook=True),
                Column(header="Severity", label="severity"),
                Column(header="Namespace", label="namespace"),
                Column(header="Service", label="rayhelm_dev_service", link="service"),
                Column(header="Alerts", line=line(kubernetes.firing_alerts, names=ALERTS)),
            ),
        ),
    ),
)

SERVICES = Row(
    title="Services and models",
    panels=(
        Table(
            title="Services",
            description="The latest values of each service. A click on the name opens its dashboard.",
            thresholds=informational(),
            width=12,
            columns=(
                Column(header="Service", label="rayhelm_dev_service", link="service"),
                Column(header="Namespace", label="namespace"),
                Column(
                    header="Available, 1 h", line=line(slo.availability, window="1h"), thresholds=falling(0.99, 0.999)
                ),
                Column(header="Requests", line=line(traffic.request_rate)),
                Column(header="Waiting", line=line(queues.queue_length), thresholds=rising(5, 20)),
                Column(
                    header="Missing replicas",
                    line=line(scaling.missing_replicas, by=labels.SERVICE),
                    thresholds=rising(1, 2),
                ),
            ),
        ),
        Table(
            title="Models",
            description="The latest values of each model, and those of the plan. No data in the plan's columns: the "
            "recording rules of chart platform are not installed.",
            thresholds=informational(),
            width=12,
            columns=(
                Column(header="Model", label="model_name", link="service"),
                Column(
                    header="TTFT p95", line=line(latency.time_to_first_token, window="5m"), thresholds=rising(1, 2.5)
                ),
                Column(header="Plan TTFT", line=line(recorded.planned_time_to_first_token)),
                Column(
                    header="TPOT p95",
                    line=line(latency.time_per_output_token, window="5m"),
                    thresholds=rising(0.06, 0.12),
                ),
                Column(header="Plan TPOT", line=line(recorded.planned_time_per_output_token)),
                Column(header="Output", line=line(traffic.generated_token_rate)),
                Column(header="Cost", line=line(recorded.cost_per_hour)),
            ),
        ),
        TimeSeries(
            title="Requests by service",
            description="HTTP requests per second at the Serve proxies of each service.",
            lines=(line(traffic.request_rate, SERVICE),),
        ),
        TimeSeries(
            title="Tokens by model",
            description="Generated tokens per second of each model.",
            lines=(line(traffic.generated_token_rate, MODEL),),
        ),
        TimeSeries(
            title="Waiting requests by service",
            description="Requests that wait in Serve and in the engines of each service.",
            thresholds=rising(5, 20),
            lines=(line(queues.queue_length, SERVICE),),
            runbook="QueueGrowing",
        ),
    ),
)

OBJECTIVES = Row(
    title="Objectives",
    panels=(
        BarGauge(
            title="Error budget left",
            description="Share of the error budget that is left if the whole period of the objective was like the "
            "last 3 days: availability, time to first token, time per output token. Below 0 the objective is missed. A "
            "name without a service is of the gateway.",
            thresholds=falling(0, 0.1),
            maximum=1,
            no_value=NO_RULES,
            lines=(
                line(recorded.error_budget_left, f"available {OF_SERVICE}", slo="availability"),
                line(recorded.error_budget_left, f"TTFT {OF_SERVICE}", slo="ttft"),
                line(recorded.error_budget_left, f"TPOT {OF_SERVICE}", slo="tpot"),
            ),
            runbook="AvailabilityBudgetBurnsSlowly",
        ),
        TimeSeries(
            title="Burn rate, 1 h",
            description="How fast the error budgets are used: 1 uses a budget within the period of its objective, "
            "14.4 uses 2 % of a budget of 30 days in an hour and pages.",
            thresholds=rising(6, 14.4),
            shows_thresholds=True,
            no_value=NO_RULES,
            lines=(
                line(recorded.burn_rate, f"available {OF_SERVICE}", slo="availability"),
                line(recorded.burn_rate, f"TTFT {OF_SERVICE}", slo="ttft"),
                line(recorded.burn_rate, f"TPOT {OF_SERVICE}", slo="tpot"),
            ),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        TimeSeries(
            title="Burn rate, 6 h",
            description="How fast the error budgets are used, over 6 hours: slow burns that a page for an hour does "
            "not see.",
            thresholds=rising(3, 6),
            shows_thresholds=True,
            no_value=NO_RULES,
            lines=(
                line(recorded.burn_rate, f"available {OF_SERVICE}", slo="availability", period="6h"),
                line(recorded.burn_rate, f"TTFT {OF_SERVICE}", slo="ttft", period="6h"),
                line(recorded.burn_rate, f"TPOT {OF_SERVICE}", slo="tpot", period="6h"),
            ),
            runbook="AvailabilityBudgetBurnsSlowly",
        ),
    ),
)

COSTS = Row(
    title="Costs",
    panels=(
        TimeSeries(
            title="Cost per hour",
            description="Cost of the running replicas of each model, idle ones included. Dashed: the cost of the plan.",
            is_stacked=True,
            no_value=NO_RULES,
            lines=(
                line(recorded.cost_per_hour, MODEL),
                line(recorded.planned_cost_per_hour, f"plan {MODEL}", is_planned=True),
            ),
        ),
        TimeSeries(
            title="Cost of a million tokens",
            description="Whole cost of the last hour over its generated tokens, and over its prompt tokens. Both "
            "divide the same cost: do not add them. Dashed: the plan at its load.",
            minimum=None,
            is_logarithmic=True,  # a start has cost and hardly any tokens
            no_value=NO_RULES,
            lines=(
                line(recorded.cost_per_million_generated_tokens, f"generated {MODEL}"),
                line(recorded.cost_per_million_prompt_tokens, f"prompt {MODEL}"),
                line(recorded.planned_cost_per_million_generated_tokens, f"plan {MODEL}", is_planned=True),
            ),
        ),
        TimeSeries(
            title="Idle cost per hour",
            description="Cost of GPUs without a replica, and of replicas without a request in flight. It is the price "
            "of short waiting times, or of too many replicas.",
            no_value=NO_RULES,
            lines=(line(recorded.idle_service_cost_per_hour, SERVICE),),
            runbook="GpuIdle",
        ),
    ),
)

GPUS = Row(
    title="GPUs",
    panels=(
        TimeSeries(
            title="GPUs allocated and used",
            description="GPU resources of the nodes, those that pods request, and those that Ray gave to replicas. "
            "Allocated above used for long: workers wait for replicas.",
            is_stepped=True,
            no_value="no GPU",
            lines=(
                line(gpu.allocatable, "of the nodes", by=()),
                line(gpu.allocated, "allocated", by=()),
                line(ray_cluster.logical_gpus, "Ray: {{State}}", by=("State",)),
            ),
            runbook="GpuIdle",
        ),
        TimeSeries(
            title="Utilization by node",
            description="Utilization of the busiest GPU of each node, from the vendors' exporters.",
            maximum=1,
            no_value="no GPU exporter",
            lines=(line(gpu.utilization, "{{node}}", by=("node",)),),
        ),
        BarGauge(
            title="Idle while allocated",
            description="GPUs of each service that worked less than 5 % of the last 30 minutes.",
            thresholds=rising(1, 4),
            no_value="none",
            lines=(line(gpu.idle_while_allocated, SERVICE),),
            runbook="GpuIdle",
        ),
    ),
)

UPGRADES = Row(
    title="Status and upgrades",
    panels=(
        StateTimeline(
            title="Applications",
            description="Status that Ray Serve gives each application. DEPLOYING is normal after a change.",
            thresholds=informational(),
            width=8,
            states=APPLICATION_STATES,
            lines=(line(scaling.application_status, "{{rayhelm_dev_service}} {{application}}"),),
            runbook="NoReadyReplica",
        ),
        StateTimeline(
            title="Upgrades",
            description="RayServices that KubeRay upgrades: a second Ray cluster runs beside the first one and "
            "needs its GPUs.",
            thresholds=informational(),
            width=8,
            states=YES_NO,
            no_value="no upgrade, or the KubeRay operator is not scraped",
            lines=(line(kubernetes.service_upgrading, "{{namespace}} {{name}}"),),
            runbook="UpgradeStuck",
        ),
        StateTimeline(
            title="RayServices without endpoints",
            description="RayServices that KubeRay reports as not ready: no Serve endpoint takes requests.",
            thresholds=informational(),
            width=8,
            states=YES_NO,
            no_value="none, or the KubeRay operator is not scraped",
            lines=(line(kubernetes.service_not_ready, "{{namespace}} {{name}}"),),
            runbook="RayServiceNotReady",
        ),
    ),
)

OBJECTS = Row(
    title="Kubernetes",
    panels=(
        Table(
            title="Used quota",
            description="Used share of each ResourceQuota. GPUs, CPU and memory can be full in normal operation: their "
            "limits are what the plan and an upgrade need.",
            thresholds=informational(),
            width=8,
            no_value="no quota, or kube-state-metrics is not scraped",
            columns=(
                Column(header="Namespace", label="namespace"),
                Column(header="Resource", label="resource"),
                Column(
                    header="Used",
                    line=line(kubernetes.quota_usage, by=(*labels.NAMESPACE, "resource")),
                    thresholds=rising(0.9, 1),
                ),
            ),
        ),
        TimeSeries(
            title="Containers that wait",
            description="Containers that do not start, by reason: images that cannot be pulled, missing Secrets, "
            "containers that crash.",
            thresholds=rising(1, 4),
            is_stepped=True,
            no_value="none, or kube-state-metrics is not scraped",
            lines=(line(kubernetes.waiting_containers, "{{namespace}} {{reason}}"),),
            runbook="PodWithoutConfig",
        ),
        BarGauge(
            title="Pods without a node",
            description="Pods that no node can take: no GPU of their kind is free, or a node is being added.",
            thresholds=rising(1, 4),
            no_value="none, or kube-state-metrics is not scraped",
            lines=(line(kubernetes.unschedulable_pods, "{{namespace}}"),),
            runbook="ScalingStuck",
        ),
    ),
)

DASHBOARD = Dashboard(
    name="fleet",
    title="rayhelm: Fleet",
    description="Firing alerts, objectives, upgrades, Kubernetes objects, costs and GPUs of all services.",
    time_range="now-6h",
    refresh="1m",
    rows=(ALERTS_ROW, OBJECTIVES, NOW, SERVICES, UPGRADES, OBJECTS, COSTS, GPUS),
)
