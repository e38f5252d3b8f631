"""Expressions of rules: PromQL, in which `{{ module.function(arguments) }}` calls a query for all services."""

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.observe.queries import Query, Scope, all_queries, labels

__all__ = ["EVERY_SERVICE", "expand"]

EVERY_SERVICE = Scope(service='!=""', gateway='!=""')
"""Services and gateways of rayhelm; Prometheus may scrape other Ray clusters too."""

_FIX = Fix("expr", "{{ ray_cluster.head_memory_ratio() }} > 0.85", "the functions are in rayhelm/observe/queries")


def expand(template: str, file: str) -> str:
    """Return the PromQL of an expression. Raise FleetError, which names `file`, if it calls a query that does not
    exist, or calls it with wrong arguments."""
    from jinja2 import Environment, StrictUndefined, TemplateError, UndefinedError

    environment = Environment(undefined=StrictUndefined)
    try:
        text: str = environment.from_string(template).render(_namespaces())
    except UndefinedError as error:
        name = str(error).rpartition("'")[0].rpartition("'")[2]
        short = {query.rpartition(".")[2]: query for query in all_queries()}
        message = f"there is no query `{name}`; {did_you_mean(short.get(name, name), all_queries())}"
        raise FleetError(Problem(message, path="expr", file=file, fix=_FIX)) from None
    except (TemplateError, TypeError, KeyError, ValueError) as error:
        raise FleetError(Problem(f"cannot be expanded: {error}", path="expr", file=file, fix=_FIX)) from None
    return " ".join(text.split())


@cache
def _namespaces() -> dict[str, object]:
    """Modules with their queries, for all services, and lists of labels by their names."""
    found: dict[str, dict[str, Callable[..., str]]] = {}
    for name, query in all_queries().items():
        module, _, function = name.partition(".")
        found.setdefault(module, {})[function] = partial(_call, query)
    lists = {name: getattr(labels, name) for name in labels.__all__ if name.isupper()}
    return {**lists, **{module: SimpleNamespace(**functions) for module, functions in found.items()}}


def _call(query: "Query[...]", *args: object, **kwargs: object) -> str:
    """In parentheses, because a comparison binds closer than an `or` in the query."""
    return f"({query(EVERY_SERVICE, *args, **kwargs)})"
