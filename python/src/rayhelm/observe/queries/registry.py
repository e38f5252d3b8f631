"""The registry of queries."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Generic, Literal, ParamSpec

__all__ = ["SUBJECTS", "Idle", "Query", "Unit", "all_queries", "query"]

SUBJECTS = (
    "traffic",
    "latency",
    "queues",
    "scaling",
    "gateway",
    "tenants",
    "gpu",
    "ray_cluster",
    "slo",
    "cost",
    "kubernetes",
    "recorded",
    "conditions",
    "objectives",
    "model_cost",
    "versions",
)
"""Modules with queries."""

Unit = Literal[
    "seconds",
    "bytes",
    "bytes/s",
    "ratio",
    "requests",
    "requests/s",
    "tokens",
    "tokens/s",
    "replicas",
    "servers",
    "connections",
    "state",
    "count",
    "count/s",
    "nodes",
    "gpus",
    "watts",
    "joules",
    "celsius",
    "hertz",
    "code",
    "dollars",
    "dollars/h",
    "dollars/Mtoken",
    "dollars/request",
    "cores",
    "unix time",
]
"""Unit of a result. `panels` translates it to Grafana's."""
Idle = Literal["zero", "no data", "value"]
"""Result without requests, and before the first one. `zero`: 0 while the target runs. `no data`: nothing, because a
ratio or quantile of nothing does not exist. `value`: as with requests."""

Arguments = ParamSpec("Arguments")
_queries: dict[str, "Query[...]"] = {}


@dataclass(frozen=True)
class Query(Generic[Arguments]):
    """A function that returns PromQL, and what is known about its result."""

    name: str
    """`module.function`."""
    unit: Unit
    idle: Idle
    first: bool
    """Includes the first increment of a counter that is new."""
    build: Callable[Arguments, str]

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> str:
        return self.build(*args, **kwargs)

    @property
    def description(self) -> str:
        """The docstring: what the result is."""
        return inspect.cleandoc(self.build.__doc__ or "")


def query(*, unit: Unit, idle: Idle, first: bool = False) -> Callable[[Callable[Arguments, str]], Query[Arguments]]:
    """Register a function that returns PromQL. Its first parameter is the scope, and all others have defaults."""

    def register(build: Callable[Arguments, str]) -> Query[Arguments]:
        name = f"{build.__module__.rpartition('.')[2]}.{build.__name__}"
        registered = Query(name, unit, idle, first, build)
        _queries[name] = registered
        return registered

    return register


@cache
def all_queries() -> dict[str, "Query[...]"]:
    """Every query, by `module.function`."""
    for subject in SUBJECTS:
        import_module(f"rayhelm.observe.queries.{subject}")
    return dict(_queries)
