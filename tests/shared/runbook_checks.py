"""Check the arguments of a command: by the tool's own help, and by the objects that the charts render."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import typer

from rayhelm.cli.app import app
from rayhelm.deploy.charts.helm import find_helm
from rayhelm.live.cluster.kubectl import find_kubectl
from rayhelm.live.doctor.check import load_checks
from rayhelm.observe.check import check_query
from shared.doctor_recording import read_recording
from shared.runbook_commands import GIVEN, OUTPUT, Command, check_syntax

__all__ = ["Objects", "check_command", "read_objects"]

OF_OPERATORS = {
    "prometheus": "prometheuses",
    "horizontalpodautoscaler": "horizontalpodautoscalers",
    **{kind: f"{kind}s" for kind in ("prometheusrule", "podmonitor", "scrapeconfig")},
    **{kind: f"{kind}s" for kind in ("certificate", "certificaterequest", "order", "challenge")},
}
"""Kinds that the recording lacks, of autoscaling and two operators, with their plurals. All have a namespace."""
FOREIGN_SELECTORS = {
    "app.kubernetes.io/name=kuberay-operator": "chart kuberay-operator: Deployment and pods",
    "app.kubernetes.io/name=prometheus": "the Prometheus Operator: pods of a Prometheus",
}
"""Selectors of objects that the charts do not render."""
POD_COMMANDS = {"logs", "exec", "port-forward", "attach", "cp"}
KIND_COMMANDS = {"get", "describe", "delete", "top", "wait"}
CURL_OPTIONS = {"-sS", "-fsS", "-G", "-H", "--data-urlencode", "--retry", "--retry-connrefused"}
FROM_READER = {GIVEN, OUTPUT}


@dataclass
class Objects:
    """Labels of the rendered objects, and containers of the rendered pods, by kind in lower case."""

    labels: dict[str, list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))
    pods: list[tuple[dict[str, str], set[str]]] = field(default_factory=list)
    """Labels and containers of each pod."""


def read_objects(manifests: Iterable[Any]) -> Objects:
    """Return what commands may name of rendered objects, and of the pods of their templates."""
    found = Objects()
    for item in manifests:
        found.labels[item["kind"].lower()].append(item["metadata"].get("labels", {}))
        found.pods += _find_pods(item)
    found.labels["pod"] += [labels for labels, _ in found.pods]
    return found


def _find_pods(item: Any) -> Iterator[tuple[dict[str, str], set[str]]]:
    if isinstance(item, list):
        for each in item:
            yield from _find_pods(each)
    if not isinstance(item, dict):
        return
    spec = item.get("spec")
    if isinstance(spec, dict) and "containers" in spec:
        containers = [*spec["containers"], *spec.get("initContainers", [])]
        yield item.get("metadata", {}).get("labels", {}), {each["name"] for each in containers}
    for each in item.values():
        yield from _find_pods(each)


def check_command(command: Command, objects: Objects) -> list[str]:
    """Return the problems of a command."""
    tool, *arguments = command.words
    if tool == "rayhelm":
        return list(_check_rayhelm(arguments))
    if tool == "curl":
        return list(_check_curl(arguments))
    path, options, rest = _parse(tool, arguments)
    problems = [text for text in rest if text.startswith("no ")]
    if problems or not path:
        return problems or [f"no subcommand: {command}"]
    if tool == "helm":
        return list(_check_namespace(options, is_required=not command.is_inline or len(rest) > 0))
    return list(_check_kubectl(command, path, options, rest, objects))


# -- options, by the help of the tool --------------------------------------------------------------------------------


@cache
def _help(tool: str, *path: str) -> str:
    program = {"kubectl": find_kubectl, "helm": find_helm}[tool]()
    return subprocess.run([program, *path], capture_output=True, text=True, check=True).stdout


@cache
def _subcommands(tool: str, path: tuple[str, ...]) -> set[str]:
    text = _help(tool, *path, "--help")
    sections = re.findall(r"^[A-Z][\w() ]*[Cc]ommands[\w() ]*:\n((?:  .*\n)+)", text, re.MULTILINE)
    return {line.split()[0] for section in sections for line in section.splitlines()}


@cache
def _takes_value(tool: str, path: tuple[str, ...]) -> dict[str, bool]:
    """Whether each option of a command takes a value, by its long and its short name."""
    text = _help(tool, *path, "--help") + (_help(tool, "options") if tool == "kubectl" else "")
    # kubectl: `-n, --namespace='':`. helm: `-n, --namespace string   ...`
    pattern = r"^ +(?:(-\w), )?(--[\w-]+)(=(?!true|false).*:$| (?! )\w+)?"
    options = re.findall(pattern, text, re.MULTILINE)
    return {name: bool(value) for short, long, value in options for name in (short, long) if name}


def _parse(tool: str, arguments: list[str]) -> tuple[tuple[str, ...], dict[str, str], list[str]]:
    """Return the path of the subcommand, the options with their values, and the other arguments.

    A subcommand or option that does not exist is an argument that begins with `no `.
    """
    path: tuple[str, ...] = ()
    while (known := _subcommands(tool, path)) and arguments and arguments[0] in known:
        path, arguments = (*path, arguments[0]), arguments[1:]
    if not path:
        return path, {}, [f"no subcommand of {tool}: {' '.join(arguments)}"]
    takes_value = _takes_value(tool, path)
    options: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return path, options, [*rest, word, *words]
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, has_value, value = word.partition("=")
        # `-it` is `-i -t`.
        names = [name] if name.startswith("--") else [f"-{letter}" for letter in name[1:]]
        unknown = [each for each in names if each not in takes_value]
        rest += [f"no option {each} of {tool} {' '.join(path)}" for each in unknown]
        for each in names:
            needs = takes_value.get(each, False) and not has_value
            options[each] = next(words, "") if needs else value
    return path, options, rest


def _check_rayhelm(arguments: list[str]) -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    name, *rest = arguments
    if name not in group.commands:
        yield f"no command of rayhelm: {name}"
        return
    command = group.commands[name]
    parser = command.make_parser(command.context_class(command, info_name=name))
    try:
        options, extra, _ = parser.parse_args(rest)
    except Exception as error:  # typer's own copy of click raises NoSuchOption and others
        yield f"rayhelm {name}: {error}"
        return
    if extra:
        yield f"rayhelm {name}: no such argument: {' '.join(extra)}"
    checks = {check for check in options.get("check") or () if check not in FROM_READER}
    yield from (f"no check of rayhelm doctor: {check}" for check in sorted(checks - set(load_checks())))


def _check_curl(arguments: list[str]) -> Iterator[str]:
    yield from (
        f"no option of curl that runbooks use: {word}"
        for word in arguments
        if word.startswith("-") and word not in CURL_OPTIONS
    )
    queries = [word.removeprefix("query=") for word in arguments if word.startswith("query=")]
    yield from (str(problem) for query in queries for problem in check_query(query))


# -- kubectl: kinds, namespaces, selectors, containers ---------------------------------------------------------------


@cache
def _kinds() -> dict[str, tuple[str, bool]]:
    """Kind in lower case, and whether it has a namespace, by each of its names: plural, singular and short names."""
    lists = [each for each in read_recording().values() if each.get("kind") == "APIResourceList"]
    known = {name: (kind, True) for kind, plural in OF_OPERATORS.items() for name in (kind, plural)}
    for item in (item for each in lists for item in each["resources"] if "/" not in item["name"]):
        kind = item["kind"].lower()
        names = (item["name"], kind, *item.get("shortNames", ()))
        known |= dict.fromkeys(names, (kind, item["namespaced"]))
    return known


def _check_kubectl(
    command: Command, path: tuple[str, ...], options: dict[str, str], rest: list[str], objects: Objects
) -> Iterator[str]:
    own, inner = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, [])
    if inner[:2] == ["sh", "-c"] and (problem := check_syntax(inner[2])):
        yield problem
    named: list[str] = []
    if path[0] in KIND_COMMANDS and (len(path) > 1 or own):
        named = [path[1]] if path[0] == "top" and len(path) > 1 else own[0].partition("/")[0].split(",")
    if path[0] == "debug" and own:
        named = [own[0].partition("/")[0]] if "/" in own[0] else ["pod"]
    if path[0] in POD_COMMANDS:
        named = [own[0].partition("/")[0]] if own and "/" in own[0] else ["pod"]
    unknown = [name for name in named if name not in _kinds()]
    yield from (f"no kind: {name}" for name in unknown)
    kinds = [_kinds()[name] for name in named if name not in unknown]
    is_mention = command.is_inline and len(own) < 2 and not options
    needs_namespace = any(namespaced for _, namespaced in kinds) or path[:2] == ("create", "secret")
    yield from _check_namespace(options, is_required=needs_namespace and not is_mention)
    selector = options.get("-l") or options.get("--selector") or ""
    yield from (f"no {kind} has the labels {selector}" for kind, _ in kinds if not _selects(selector, objects, kind))
    container = options.get("-c") or options.get("--container")
    if container:
        yield from _check_container(container, selector or _selector_of(own), objects)


def _check_namespace(options: dict[str, str], *, is_required: bool) -> Iterator[str]:
    namespace = options.get("-n") or options.get("--namespace")
    if namespace and namespace not in FROM_READER:
        yield f"no variable: namespace {namespace} is fixed"
    if is_required and not namespace and not {"-A", "--all-namespaces"} & set(options):
        yield "no namespace: -n or -A is missing"


def _selector_of(arguments: list[str]) -> str:
    """The selector that a command before this one used to find the pod; see `runbook_commands.OUTPUT`."""
    name = arguments[0].removeprefix("pod/") if arguments else ""
    return name if "/" in name or "=" in name else ""


def _matches(selector: str, labels: dict[str, str]) -> bool:
    parts = [each.partition("=") for each in selector.split(",") if each]
    return all(key in labels and (not equals or value in {*FROM_READER, labels[key]}) for key, equals, value in parts)


def _selects(selector: str, objects: Objects, kind: str) -> bool:
    if not selector or selector in FOREIGN_SELECTORS:
        return True
    return any(_matches(selector, labels) for labels in objects.labels[kind])


def _check_container(container: str, selector: str, objects: Objects) -> Iterator[str]:
    names = {name for labels, containers in objects.pods if _matches(selector, labels) for name in containers}
    if container not in names:
        yield f"no container {container} in pods with {selector or 'any labels'}, but {', '.join(sorted(names))}"
