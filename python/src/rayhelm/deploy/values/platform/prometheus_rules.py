"""Alert and recording rules of Prometheus, and the plan and objectives of each model as series."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values
from rayhelm.deploy.values.common.labels import Labels, LabelValue

__all__ = ["KeysSecretRef", "ModelObjectives", "ModelPlanSeries", "PrometheusRules", "RuledModel"]

ModelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$", max_length=96)]
AlertName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]+$", max_length=63)]
LabelName = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=63)]
PromDuration = Annotated[str, Field(pattern=r"^[0-9]+[smhd]$")]
Amount = Annotated[float, Field(ge=0)]
Reason = Annotated[str, Field(min_length=8)]


class AlertSettings(Values):
    """Changes of one alert."""

    severity: Literal["critical", "warning", "info", ""] = ""
    """Another severity; empty: that of the alert."""
    pending: Annotated[PromDuration | Literal[""], Field(alias="for")] = ""
    """Another time for which the condition holds before it fires; empty: that of the alert."""
    disabled_reason: Reason | Literal[""] = ""
    """Leave the alert out, and why."""


class ModelObjectives(Values):
    """Service level objectives of a model. Alerts compare how fast their error budget is used."""

    availability: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """Share of the answers that are no server error (5xx); 0: no objective."""
    ttft_seconds: Amount = 0
    """Target of the time to first token; 0: no objective. Measured at the boundary of the histogram at or above it."""
    tpot_seconds: Amount = 0
    """Target of the time per output token; 0: no objective. Measured at the boundary at or above it."""
    latency_share: Annotated[float, Field(ge=0.85, lt=1)] = 0.95
    """Share of the requests that meet each of these targets. With less than 0.85, no share of late requests would use
    the error budget fast enough for an alert."""
    window_days: Annotated[int, Field(ge=1, le=30)] = 30
    """Days over which the objectives hold."""


class ModelPlanSeries(Values):
    """Figures of the plan, as series `rayhelm:plan_*` beside the measured ones. 0: unknown, and no series."""

    replicas: Amount = 0
    """Replicas at the planned load."""
    min_replicas: Amount = 0
    """Smallest number of replicas of the autoscaling."""
    max_replicas: Amount = 0
    """Largest number of replicas of the autoscaling."""
    requests_per_second: Amount = 0
    """Planned load."""
    input_tokens: Amount = 0
    """Prompt tokens of a request of the planned load."""
    output_tokens: Amount = 0
    """Generated tokens of a request of the planned load."""
    concurrency: Amount = 0
    """Requests in flight in a replica at the planned load."""
    ttft_seconds: Amount = 0
    """Estimated time to first token."""
    tpot_seconds: Amount = 0
    """Estimated time per output token."""
    tokens_per_second: Amount = 0
    """Estimated output tokens per second of a replica."""
    dollars_per_million_output_tokens: Amount = 0
    """Price of a million output tokens at the planned load."""


class RuledModel(Values):
    """A model that rules know."""

    service: Name
    """Service that serves it; one of `metrics.services`."""
    application: Name | Literal[""] = ""
    """Its Serve application; empty: the name of the model. Availability is counted by application."""
    deployment: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:._-]*$")] | Literal[""] = ""
    """Its Serve deployment that uses the GPU; empty: `LLMServer:` and the name of the model."""
    served_as: ModelName | Literal[""] = ""
    """Label `model_name` of its metrics; empty: the name of the model."""
    gateway: Name | Literal[""] = ""
    """Gateway that serves it; one of `metrics.gateways`. Its availability is then measured there, else at Ray Serve."""
    slo: ModelObjectives = ModelObjectives()
    """Service level objectives."""
    plan: ModelPlanSeries = ModelPlanSeries()
    """Figures of the plan."""
    replica_dollars_per_hour: Amount | None = None
    """Price of one replica per hour; absent if it is unknown, and then the model has no cost."""


class KeysSecretRef(Values):
    """Secret with the hashes of a tenant's API keys."""

    namespace: Name
    """Its namespace: that of the gateway."""
    secret_name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
    """Its name."""


class PrometheusRules(Values):
    """Recording rules and alerts. Each alert has a page of the runbooks."""

    kind: Literal["None", "PrometheusRule", "ConfigMap"] = "None"
    """`PrometheusRule`: objects of the Prometheus operator. `ConfigMap`: rule files for a Prometheus without it,
    which you mount and name in `rule_files`. `None`: no rules."""
    namespace: Name | Literal[""] = ""
    """Namespace of the objects; empty for the namespace of the release."""
    cluster: LabelValue | Literal[""] = ""
    """Value of the label `cluster` of the scraped series, if Prometheus has series of several clusters: series of the
    plan get it too, and are joined with those of their cluster. Empty if the series have no such label where the rules
    are evaluated; an external label is added later."""
    labels: Labels = {}
    """Labels by which the operator finds the objects (`ruleSelector` of the Prometheus object)."""
    runbook_url: Annotated[str, Field(pattern=r"^(https?://[^\s@?#]*[^\s/@?#])?$")] = ""
    """URL of the folder with the runbooks, without a slash at the end. Required with rules: each alert links to its
    page."""
    alert_labels: dict[LabelName, LabelValue] = {}
    """Additional labels of every alert, for the routes of Alertmanager (`team: platform`)."""
    alerts: dict[AlertName, AlertSettings] = {}
    """Changes of alerts, by name."""
    inhibition: bool = False
    """Render the ConfigMap `RELEASE-inhibition` with inhibition rules of Alertmanager: one outage is one page.
    Alertmanager cannot include files: add them to your alertmanager.yaml."""
    watchdog: bool = False
    """Include `Watchdog`, an alert that always fires, so that a receiver notices when alerts no longer arrive."""
    models: dict[ModelName, RuledModel] = {}
    """Objectives, plan and price of each model, by name. `rayhelm render` writes them from the fleet file."""
    gpu_prices: dict[Name, dict[Name, Amount]] = {}
    """USD per unit of the GPU resource and hour, by service and worker group; a group whose price is unknown is left
    out. The unit is a whole GPU, a MIG instance or a time slice, as Ray counts GPUs."""
    keys_secrets: dict[Name, KeysSecretRef] = {}
    """Secrets with API keys, by tenant. An alert fires if one is missing."""
    redis_namespaces: list[Name] = []
    """Namespaces with the Redis that keeps the state of Ray heads. An alert fires if no pod of one is ready."""
