"""The variables that select the way of requests inside a Ray cluster: alike in all pods, and possible for its
applications."""

from collections.abc import Iterator, Mapping

from rayhelm.check.lint.ray_service.source import RayService, as_list, as_map
from rayhelm.deploy.serve_models import find_llm_builder
from rayhelm.errors import Fix, Problem
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_data_path"]

RULE = "ray-data-path"
_HAPROXY = "RAY_SERVE_ENABLE_HA_PROXY"
_DIRECT = "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING"
_BODY = "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY"


def check_data_path(service: RayService) -> Iterator[Problem]:
    """Yield variables that differ between pods, and applications that Ray refuses with them."""
    groups = [(path, _read_variables(group)) for path, group in service.list_groups()]
    head_path, head = groups[0]
    for path, found in groups[1:]:
        for name in (_HAPROXY, _DIRECT, _BODY):
            if found.get(name) != head.get(name):
                yield _build_difference(service, name, head_path, path, head.get(name), found.get(name))
    if head.get(_DIRECT) != "1":
        return
    if head.get(_HAPROXY) != "1":
        message = f"has {_DIRECT}=1 without {_HAPROXY}=1, and only Ray's HAProxy sends requests to replicas"
        fix = Fix("template.spec.containers[0].env", [{"name": name, "value": "1"} for name in (_HAPROXY, _DIRECT)])
        yield service.document.problem(head_path, message, fix, RULE)
    for path, application in service.list_applications():
        if find_llm_builder(str(application.get("import_path"))):
            yield from _check_application(service, (*path, "args"), as_map(application.get("args")))


def _check_application(service: RayService, path: Path, args: Mapping[str, object]) -> Iterator[Problem]:
    for key in ("ingress_deployment_config", "ingress_cls_config"):
        if args.get(key):
            message = f"Ray refuses it with {_DIRECT}=1, where an application has no ingress deployment"
            yield service.document.problem((*path, key), message, Fix.advice(f"remove `{key}`"), RULE)
    if (count := len(as_list(args.get("llm_configs")))) > 1:
        message = f"has {count} models, and with {_DIRECT}=1 Ray builds applications of one model only"
        fix = Fix.advice("give each model an application of its own")
        yield service.document.problem((*path, "llm_configs"), message, fix, RULE)


def _build_difference(
    service: RayService, name: str, head_path: Path, path: Path, ours: str | None, theirs: str | None
) -> Problem:
    group = service.document.data
    for step in path:
        group = group[step]
    message = (
        f"group {as_map(group).get('groupName', path[-1])} has {_describe(name, theirs)}, and the head has"
        f" {_describe(name, ours)}: the controller on the head and the proxy of each node need the same"
    )
    fix = Fix.advice(f"set {name} to the same value in the Ray container of the head and of each worker group")
    return service.document.problem(path, message, fix, RULE)


def _describe(name: str, value: str | None) -> str:
    return f"no {name}" if value is None else f"{name}={value}"


def _read_variables(group: Mapping[str, object]) -> dict[str, str]:
    """Return the variables of the Ray container, which is the first one."""
    containers = as_list(as_map(as_map(group.get("template")).get("spec")).get("containers"))
    env = as_list(as_map(containers[0]).get("env")) if containers else []
    return {str(item.get("name")): str(item.get("value", "")) for item in env if isinstance(item, dict)}
