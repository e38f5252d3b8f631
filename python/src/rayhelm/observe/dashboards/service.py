"""One service: latency, traffic, queues, cache and replicas of its models, beside the figures of the plan."""

from rayhelm.observe.dashboard_model import (
    Dashboard,
    Heatmap,
    Row,
    Stat,
    StateTimeline,
    TimeSeries,
    falling,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import labels, latency, queues, recorded, scaling, slo, traffic
from rayhelm.observe.states import APPLICATION_STATES

__all__ = ["DASHBOARD"]

MODEL = "{{model_name}}"
DEPLOYMENT = "{{application}} {{deployment}}"
"""Each application has an `OpenAiIngress`."""
TTFT, TPOT, E2E = rising(1, 2.5), rising(0.06, 0.12), rising(20, 60)

NOW = Row(
    title="Now",
    panels=(
        Stat(
            title="Time to first token, p95",
            description="Time from the arrival of a request in the engine to its first token, of the slowest 5 %. "
            "No data means no requests. Compare it with the queue and the prefill time below.",
            thresholds=TTFT,
            lines=(line(latency.time_to_first_token, MODEL),),
            runbook="TtftBudgetBurnsFast",
        ),
        Stat(
            title="Time per output token, p95",
            description="Mean time between the tokens of a request, of the slowest 5 % of requests. High values "
            "mean that the batch is too large for the GPU, or that prefills interrupt it.",
            thresholds=TPOT,
            lines=(line(latency.time_per_output_token, MODEL),),
            runbook="TpotBudgetBurnsFast",
        ),
        Stat(
            title="Availability",
            description="Share of HTTP requests at the Serve proxies without a server error (5xx) in the last hour.",
            thresholds=falling(0.99, 0.999),
            decimals=2,
            lines=(line(slo.availability, "{{rayhelm_dev_service}}", window="1h"),),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        Stat(
            title="Requests",
            description="HTTP requests per second at the Serve proxies, without health checks.",
            thresholds=informational(),
            lines=(line(traffic.request_rate, "{{rayhelm_dev_service}}"),),
        ),
        Stat(
            title="Waiting requests",
            description="Requests that wait in the routers of Serve and in the engines together.",
            thresholds=rising(5, 20),
            lines=(line(queues.queue_length, "{{rayhelm_dev_service}}"),),
            runbook="QueueGrowing",
        ),
        Stat(
            title="Missing replicas",
            description="Replicas that Serve wants and that are not healthy. They start, or cannot start.",
            thresholds=rising(1, 2),
            lines=(line(scaling.missing_replicas, DEPLOYMENT),),
            runbook="NoReadyReplica",
        ),
    ),
)

LATENCY = Row(
    title="Latency",
    panels=(
        TimeSeries(
            title="Time to first token",
            description="Quantiles of the time to first token in the engine. The dashed line is the figure of the "
            "plan at the planned load.",
            thresholds=TTFT,
            lines=(
                line(latency.time_to_first_token, f"p50 {MODEL}", q=0.5),
                line(latency.time_to_first_token, f"p95 {MODEL}", q=0.95),
                line(latency.time_to_first_token, f"p99 {MODEL}", q=0.99),
                line(recorded.planned_time_to_first_token, f"plan {MODEL}", is_planned=True),
            ),
            runbook="TtftBudgetBurnsFast",
        ),
        TimeSeries(
            title="Time per output token",
            description="Quantiles over requests of the mean time per output token. Values below 10 ms are not "
            "resolved. The dashed line is the figure of the plan.",
            thresholds=TPOT,
            lines=(
                line(latency.time_per_output_token, f"p50 {MODEL}", q=0.5),
                line(latency.time_per_output_token, f"p95 {MODEL}", q=0.95),
                line(latency.time_per_output_token, f"p99 {MODEL}", q=0.99),
                line(recorded.planned_time_per_output_token, f"plan {MODEL}", is_planned=True),
            ),
            runbook="TpotBudgetBurnsFast",
        ),
        TimeSeries(
            title="Request latency",
            description="Quantiles of the time of a whole request in the engine. It grows with the number of "
            "generated tokens. Values below 0.3 s are not resolved.",
            thresholds=E2E,
            lines=(
                line(latency.request_latency, f"p50 {MODEL}", q=0.5),
                line(latency.request_latency, f"p95 {MODEL}", q=0.95),
                line(latency.request_latency, f"p99 {MODEL}", q=0.99),
            ),
        ),
        Heatmap(
            title="Time to first token, distribution",
            description="Requests per second by time to first token. Two bands mean two kinds of requests: for "
            "example with and without a cached prefix.",
            thresholds=TTFT,
            width=8,
            lines=(line(latency.time_to_first_token_buckets),),
        ),
        TimeSeries(
            title="Where the time goes, p95",
            description="Time that a request waits in the engine, is prefilled, and decodes. Values below 0.3 s are "
            "not resolved.",
            thresholds=E2E,
            lines=(
                line(latency.engine_queue_time, f"wait {MODEL}"),
                line(latency.prefill_time, f"prefill {MODEL}"),
                line(latency.decode_time, f"decode {MODEL}"),
            ),
        ),
        TimeSeries(
            title="Time in Ray Serve, p95",
            description="Time at the Serve proxy, and time that a request waits in the router for a replica. The "
            "proxy includes the engine.",
            thresholds=E2E,
            lines=(
                line(latency.proxy_latency, "proxy {{application}}"),
                line(latency.routing_time, f"router {DEPLOYMENT}"),
            ),
        ),
    ),
)

TRAFFIC = Row(
    title="Traffic",
    panels=(
        TimeSeries(
            title="Requests by status",
            description="HTTP requests per second at the Serve proxies by status. 404 on an unknown path is not "
            "counted.",
            is_stacked=True,
            lines=(line(traffic.request_rate, "{{status_code}}", by=("status_code",)),),
        ),
        TimeSeries(
            title="Tokens",
            description="Prompt tokens, those of them from a cache, and generated tokens per second. The dashed "
            "line is the plan's output of all running replicas.",
            lines=(
                line(traffic.prompt_token_rate, f"prompt {MODEL}"),
                line(traffic.cached_prompt_token_rate, f"cached {MODEL}"),
                line(traffic.generated_token_rate, f"generated {MODEL}"),
                line(recorded.planned_generated_token_rate, f"plan {MODEL}", is_planned=True),
            ),
        ),
        TimeSeries(
            title="Finish reasons",
            description="Finished requests per second by reason. `length`: the limit of tokens was reached. "
            "`abort`: the client left. `error`: the engine failed.",
            is_stacked=True,
            lines=(line(traffic.finished_request_rate, "{{finished_reason}}", by=("finished_reason",)),),
        ),
        TimeSeries(
            title="Server errors",
            description="Responses with a status from 500 in the last 5 minutes, and requests that the engines "
            "ended with an error.",
            thresholds=rising(1, 10),
            shows_thresholds=True,
            lines=(
                line(traffic.errors, "HTTP {{rayhelm_dev_service}}", window="5m"),
                line(traffic.failed_requests, f"engine {MODEL}", window="5m"),
            ),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        TimeSeries(
            title="Exceptions in replicas",
            description="Exceptions in the last 5 minutes by type. `EngineDeadError` means that the engine of a "
            "replica died; the RayService can stay Ready.",
            thresholds=rising(1, 10),
            no_value="none",
            lines=(line(traffic.exceptions, f"{{{{exception_type}}}} {DEPLOYMENT}", window="5m"),),
            runbook="EngineDead",
        ),
        TimeSeries(
            title="Lengths",
            description="Quantiles of prompt and output lengths. The dashed lines are the lengths of the fleet "
            "file, for which the plan was made.",
            lines=(
                line(traffic.prompt_length, f"prompt p50 {MODEL}", q=0.5),
                line(traffic.prompt_length, f"prompt p95 {MODEL}", q=0.95),
                line(traffic.generated_length, f"output p50 {MODEL}", q=0.5),
                line(traffic.generated_length, f"output p95 {MODEL}", q=0.95),
                line(recorded.planned_prompt_length, f"plan prompt {MODEL}", is_planned=True),
                line(recorded.planned_generated_length, f"plan output {MODEL}", is_planned=True),
            ),
        ),
    ),
)

QUEUES = Row(
    title="Queues and cache",
    panels=(
        TimeSeries(
            title="Waiting requests",
            description="Requests that wait in the routers of Serve for a replica, and in the engines for a place "
            "in the batch.",
            thresholds=rising(5, 20),
            lines=(
                line(queues.serve_queued, f"Serve {DEPLOYMENT}"),
                line(queues.waiting, f"engine {MODEL}"),
            ),
            runbook="QueueGrowing",
        ),
        TimeSeries(
            title="Running requests",
            description="Requests in the batches of the engines. The dashed line is the plan's concurrency of all "
            "running replicas.",
            lines=(
                line(queues.running, f"running {MODEL}"),
                line(recorded.planned_concurrency, f"plan {MODEL}", is_planned=True),
            ),
        ),
        TimeSeries(
            title="Waiting requests by reason",
            description="`capacity`: no place in the batch or no KV cache blocks. `deferred`: waits for a LoRA "
            "adapter or a KV transfer.",
            thresholds=rising(5, 20),
            no_value="none",
            lines=(line(queues.waiting_by_reason, f"{{{{reason}}}} {MODEL}"),),
        ),
        TimeSeries(
            title="KV cache usage",
            description="Used share of the KV cache, of the engine that uses most. At 100 % engines preempt requests.",
            thresholds=rising(0.85, 0.95),
            shows_thresholds=True,
            maximum=1,
            lines=(line(queues.kv_cache_usage, MODEL),),
            runbook="KvCacheSaturated",
        ),
        TimeSeries(
            title="Prefix cache",
            description="Share of looked-up tokens that the prefix cache had, and share of prompt tokens from any "
            "cache. A fall after a new replica is normal: its cache is empty.",
            maximum=1,
            lines=(
                line(queues.prefix_cache_hit_ratio, f"hits {MODEL}"),
                line(queues.cached_prompt_ratio, f"cached prompt tokens {MODEL}"),
            ),
        ),
        TimeSeries(
            title="Preemptions",
            description="Requests in the last 5 minutes that lost their KV cache blocks and have to be computed again.",
            thresholds=rising(1, 20),
            shows_thresholds=True,
            lines=(line(queues.preemptions, MODEL, window="5m"),),
            runbook="PreemptionStorm",
        ),
    ),
)

REPLICAS = Row(
    title="Replicas",
    panels=(
        TimeSeries(
            title="Replicas",
            description="Healthy replicas and the number that Serve wants. The dashed line is the plan's number at "
            "the planned load.",
            is_stepped=True,
            lines=(
                line(scaling.healthy_replicas, f"healthy {DEPLOYMENT}"),
                line(scaling.target_replicas, f"target {DEPLOYMENT}"),
                line(recorded.planned_replicas, f"plan {MODEL}", is_planned=True),
            ),
            runbook="ScalingStuck",
        ),
        TimeSeries(
            title="Requests per replica",
            description="Requests in the replicas of each deployment, from Serve's own count.",
            lines=(line(queues.replica_requests, DEPLOYMENT),),
        ),
        StateTimeline(
            title="Status of applications",
            description="Status that Ray Serve gives each application. It can be RUNNING while an engine is dead: "
            "see exceptions in replicas.",
            thresholds=informational(),
            width=8,
            height=8,
            states=APPLICATION_STATES,
            lines=(line(scaling.application_status, "{{rayhelm_dev_service}} {{application}}"),),
            runbook="NoReadyReplica",
        ),
    ),
)

DISAGGREGATED = Row(
    title="Prefill and decode on different replicas",
    panels=(
        TimeSeries(
            title="Waiting requests by deployment",
            description="Requests that wait in the engines of each deployment. More in the prefill deployment: prompts "
            "need more prefill replicas. More in the decode deployment: it needs more replicas, or KV cache.",
            thresholds=rising(5, 20),
            lines=(line(queues.waiting, DEPLOYMENT, by=labels.DEPLOYMENT),),
            runbook="QueueGrowing",
        ),
        TimeSeries(
            title="Transfers of the KV cache, p95",
            description="Time of a transfer of the KV cache from a prefill to a decode replica. It adds to the time to "
            "first token.",
            thresholds=rising(0.2, 1),
            no_value="no transfer",
            lines=(line(queues.kv_transfer_time, MODEL),),
            runbook="KvTransferFailing",
        ),
        TimeSeries(
            title="Failed transfers of the KV cache, 5 min",
            description="Transfers of the last 5 minutes that failed, and requests whose cache expired before a decode "
            "replica fetched it.",
            thresholds=rising(1, 20),
            lines=(line(queues.failed_kv_transfers, MODEL, window="5m"),),
            runbook="KvTransferFailing",
        ),
    ),
)

DASHBOARD = Dashboard(
    name="service",
    title="rayhelm: Service",
    description="Latency, traffic, queues, cache and replicas of a service, beside the figures of its plan.",
    rows=(NOW, LATENCY, TRAFFIC, QUEUES, REPLICAS, DISAGGREGATED),
)
