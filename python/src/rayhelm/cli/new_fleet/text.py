"""The text of a fleet file, with comments."""

from collections.abc import Iterator
from typing import Any

import yaml

from rayhelm.cli.new_fleet.answers import Answers, OwnPool
from rayhelm.facts.tasks import get_task
from rayhelm.fleet.names import derive_kubernetes_name

__all__ = ["build_text", "complete_text"]

UNPINNED = "written by rayhelm init; write the commit that you tested as revision"
FIND_ADDRESS = "kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes"


def build_text(answers: Answers, pool: OwnPool) -> str:
    """Return a fleet file with one cluster and one pool."""
    fields: dict[str, Any] = {"gpu": pool.gpu, "nodes": pool.nodes, "gpusPerNode": pool.gpus_per_node}
    lines = [
        "# Written by `rayhelm init`. `rayhelm explain FIELD` explains each key.",
        f"fleet: {answers.fleet}",
        "clusters:",
        "  main:",
        *(f"    {line}" for line in _list_cluster_lines(answers, {})),
        "pools:",
        "  gpu:",
        *(f"    {key}: {format_value(value)}" for key, value in fields.items()),
        *([f"    image: {format_value(_split_image(pool.image))}"] if pool.image else []),
    ]
    return "\n".join([*lines, *_list_model_lines(answers)]) + "\n"


def complete_text(text: str, data: dict[str, Any], cluster: str, key_line: int, answers: Answers) -> str:
    """Return the file of `rayhelm discover` with models, services and tenants, and with the missing keys of a cluster.

    `key_line`: 1-based line of the cluster; 0 if the file has none."""
    lines = text.splitlines()
    declared = (data.get("clusters") or {}).get(cluster) or {}
    added = list(_list_cluster_lines(answers, declared))
    if not key_line:
        added = ["clusters:", f"  {cluster}:", *(f"    {line}" for line in added)] if added else []
        return "\n".join([*lines, *added, *_list_model_lines(answers)]) + "\n"
    at = key_line - 1
    if lines[at].startswith("clusters:"):  # written as `clusters: {main: {...}}` in one line
        others = {name: section for name, section in data["clusters"].items() if name != cluster}
        lines[at : at + 1] = [
            "clusters:",
            *(f"  {name}: {format_value(section)}" for name, section in others.items()),
            f"  {cluster}: {format_value(declared)}",
        ]
        at += 1 + len(others)
    indent = len(lines[at]) - len(lines[at].lstrip())
    head = " " * indent + f"{cluster}:"
    if lines[at].split("#")[0].rstrip() != head:  # written as `main: {...}` in one line
        own = [f"{key}: {format_value(value)}" for key, value in declared.items()]
        lines[at : at + 1] = [head, *(" " * (indent + 2) + line for line in own)]
    lines[at + 1 : at + 1] = [" " * (indent + 2) + line for line in added]
    return "\n".join([*lines, *_list_model_lines(answers)]) + "\n"


def _list_cluster_lines(answers: Answers, declared: dict[str, Any]) -> Iterator[str]:
    """Keys that a cluster lacks."""
    if "apiServer" not in declared:
        yield f"apiServer: {{cidrs: [{answers.api_server}]}}   # {FIND_ADDRESS}"
    if "gateway" not in declared:
        yield f"gateway: {{allowedClients: [{answers.clients}]}}   # namespaces whose pods may connect"
    if answers.hub_token and "weights" not in declared:
        yield f"weights: {{hubToken: {{name: {answers.hub_token}, key: token}}}}   # you create this Secret"


def _list_model_lines(answers: Answers) -> Iterator[str]:
    pinned = f"revision: {format_value(answers.revision)}" if answers.revision else f"unpinnedReason: {UNPINNED}"
    yield "models:"
    yield f"  {format_value(answers.model)}:   # the `model` that clients send"
    yield f"    source: {format_value(answers.source)}"
    yield f"    {pinned}"
    yield f"    task: {answers.task}"
    if answers.context:
        yield f"    context: {answers.context}"
    if answers.requests_per_second:
        load: dict[str, Any] = {
            "requestsPerSecond": answers.requests_per_second,
            "inputTokens": answers.input_tokens,
        }
        if get_task(answers.task).needs_output_tokens:
            load["outputTokens"] = answers.output_tokens
        yield f"    traffic: {format_value(load)}"
    service, names = derive_kubernetes_name(answers.model), format_value([answers.model])
    yield "services:"
    yield f"  {service}: {{tenant: {answers.tenant}}}   # who owns it: namespace and quota"
    yield "tenants:"
    yield f"  {answers.tenant}: {{models: {names}, requestsPerMinute: {_limit_requests(answers)}}}"


def _limit_requests(answers: Answers) -> int:
    """Twice the planned load, so that the limit does not refuse it."""
    return max(600, round(answers.requests_per_second * 120))


def _split_image(image: str) -> dict[str, str]:
    before, _, after = image.partition("@") if "@" in image else image.rpartition(":")
    return {"repository": before, "digest" if "@" in image else "tag": after}


def format_value(value: object) -> str:
    """A value as YAML in one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("...").strip()
