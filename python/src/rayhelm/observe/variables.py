"""Variables of the dashboards, with the values of labels of series that stay when services are idle."""

import re

from rayhelm.observe.dashboard_model import Dashboard, Variable

__all__ = ["variables_of"]

_SERVICES = "ray_serve_application_status"
_GATEWAYS = "haproxy_process_uptime_seconds"
_BACKENDS = "haproxy_backend_current_sessions"


def _variables(is_of_gateway: bool) -> tuple[Variable, ...]:
    """All variables, each limited by the ones before it."""
    base = _GATEWAYS if is_of_gateway else _SERVICES
    clusters = 'cluster=~"$cluster"'
    place = f'{clusters},namespace=~"$namespace"'
    service = f'{place},rayhelm_dev_service=~"$service"'
    # Counters of an engine appear with its first request, and then stay.
    model = Variable(
        name="model", title="Model", label="model_name", series=f"ray_vllm_prompt_tokens_total{{{service}}}"
    )
    if is_of_gateway:
        backends = f'{_BACKENDS}{{{place},proxy=~".+:.+"}}'
        model = Variable(name="model", title="Model", label="proxy", series=backends, regex="/^(.+):/")
    return (
        Variable(name="cluster", title="Cluster", label="cluster", series=base),
        Variable(name="namespace", title="Namespace", label="namespace", series=f"{base}{{{clusters}}}"),
        Variable(name="service", title="Service", label="rayhelm_dev_service", series=f"{_SERVICES}{{{place}}}"),
        model,
        Variable(name="tenant", title="Tenant", label="tenant", series=f"rayhelm_gateway_limit{{{place}}}"),
    )


def variables_of(dashboard: Dashboard) -> tuple[Variable, ...]:
    """Variables that the queries of a dashboard use, and those that their values depend on."""
    texts = [query.expr for panel in dashboard.panels for query in panel.queries]
    used: list[Variable] = []
    for variable in reversed(_variables(dashboard.is_of_gateway)):
        name = re.compile(rf"\$(?:{variable.name}\b|{{{variable.name}[:}}])")
        if any(name.search(text) for text in texts):
            used.insert(0, variable)
            texts.append(variable.series)
    return tuple(used)
