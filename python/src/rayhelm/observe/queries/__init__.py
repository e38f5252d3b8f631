"""PromQL as functions. Dashboards, rules, the adapter, `cost` and `doctor` take their queries from here.

Write a query in the module of its subject, with the blocks of `blocks`, and register it:

    @query(unit="requests/s", idle="zero")
    def request_rate(scope: Scope, window: str = WINDOW, by: By = SERVICE) -> str:
        \"\"\"Requests per second.\"\"\"
        return blocks.rate("ray_serve_num_http_requests_total", scope, window, by=by)

Use it:

    traffic.request_rate(Scope.dashboard(), "$__rate_interval", by=labels.MODEL)    # PromQL
    traffic.request_rate.unit, traffic.request_rate.idle, traffic.request_rate.description
    all_queries()["traffic.request_rate"]

All results are in base units: seconds, bytes, watts, and ratios from 0 to 1.
"""

from rayhelm.observe.queries.registry import Idle, Query, Unit, all_queries, query
from rayhelm.observe.queries.scope import Scope

__all__ = ["Idle", "Query", "Scope", "Unit", "all_queries", "query"]
