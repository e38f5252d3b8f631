"""Run helm. No other module starts it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rayhelm.deploy.advice import find_pinned_tool, how_to_get_helm
from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.facts.versions import versions

__all__ = ["Loader", "charts_dir", "find_helm", "lint", "render", "split_key", "template"]

OLDEST = (3, 19)
REFUSED = re.compile(r"execution error at \([^)]*\): (?=[a-z][a-z0-9-]*: )")
REFUSAL = re.compile(r"^([a-z][a-z0-9-]*): ((?s:.+?))\nfix:\n((?:  .*(?:\n|$)|\n)+)", re.MULTILINE)
"""A rule, a message, and a fix that is indented."""
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def charts_dir() -> Path:
    """Return the folder of the charts, in the checkout or in the wheel."""
    package = Path(__file__).parents[2]
    checkout = package.parents[2] / "charts"
    return checkout if checkout.is_dir() else package / "data/charts"


@cache
def find_helm() -> Path:
    """Find helm: $HELM, else the one of the checkout, else the one on PATH if it is new enough. Raises MissingError."""
    named = os.environ.get("HELM")
    for candidate in (named, find_pinned_tool("helm"), shutil.which("helm")):
        if candidate is None:
            continue
        version = _read_version(Path(candidate))
        if version >= OLDEST:
            return Path(candidate)
        if candidate == named:
            raise MissingError(f"$HELM is {named}, which is not helm 3.19 or newer", how_to_get_helm())
    raise MissingError("helm 3.19 or newer was not found", how_to_get_helm())


def template(
    chart: str,
    release: str,
    namespace: str,
    values: Mapping[str, Any] | Sequence[Path],
    *,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    options: Sequence[str] = (),
    helm: Path | None = None,
) -> list[dict[str, Any]]:
    """Return the objects that the chart renders. Raises FleetError with the violated rule."""
    text = render(
        chart,
        release,
        namespace,
        values,
        kube_version=kube_version,
        api_versions=api_versions,
        options=options,
        helm=helm,
    )
    return [document for document in yaml.load_all(text, Loader=Loader) if document]


def render(
    chart: str,
    release: str,
    namespace: str,
    values: Mapping[str, Any] | Sequence[Path],
    *,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    options: Sequence[str] = (),
    helm: Path | None = None,
) -> str:
    """Run `helm template` and return its output. `chart` is a name in the charts folder or a path; `values` is a
    mapping or a list of files. Without `kube_version` it is the default of a fleet."""
    arguments = ["template", release, str(_find_chart(chart)), "--namespace", namespace, *_for_kubernetes(kube_version)]
    for api in api_versions:
        arguments += ["--api-versions", api]
    return _run([*arguments, *options], values, helm)


def lint(
    chart: str, values: Mapping[str, Any] | Sequence[Path], *, kube_version: str = "", helm: Path | None = None
) -> str:
    """Run `helm lint --strict` and return its output. Raises FleetError if it fails."""
    arguments = ["lint", "--strict", str(_find_chart(chart))]
    return _run([*arguments, *_for_kubernetes(kube_version)], values, helm)


def _for_kubernetes(version: str) -> list[str]:
    """Return the option, because the default of each helm is another version."""
    return ["--kube-version", version or f"{versions().kubernetes.default}.0"]


def _find_chart(chart: str) -> Path:
    return Path(chart) if "/" in chart else charts_dir() / chart


def _run(arguments: Sequence[str], values: Mapping[str, Any] | Sequence[Path], helm: Path | None) -> str:
    with tempfile.TemporaryDirectory(prefix="rayhelm-") as folder:
        files = list(values) if not isinstance(values, Mapping) else [Path(folder, "values.json")]
        if isinstance(values, Mapping):
            # Helm 4.2 ignores a JSON file of a multiple of 4096 bytes that does not end in a newline.
            files[0].write_text(json.dumps(values) + "\n")
        command = [str(helm or find_helm()), *arguments, *(part for file in files for part in ("--values", str(file)))]
        done = run_helm(command, _build_environment(folder))
    if done.returncode:
        raise FleetError(_parse_problems(done.stderr or done.stdout, files[0] if files else None))
    return done.stdout


def run_helm(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one helm command. The tests replace this function with a cache."""
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _build_environment(folder: str) -> dict[str, str]:
    """Return an environment in which Helm does not use the plugins and repositories of the user."""
    return {**os.environ, "HELM_CONFIG_HOME": folder, "HELM_CACHE_HOME": folder, "HELM_DATA_HOME": folder}


def _parse_problems(output: str, file: Path | None) -> list[Problem]:
    name = str(file) if file and file.exists() else ""
    found = REFUSAL.findall(REFUSED.split(output, 1)[-1]) if REFUSED.search(output) else []
    return [
        Problem(message, rule=rule, fix=textwrap.dedent(fix).strip("\n"), file=name) for rule, message, fix in found
    ] or [Problem(output.strip(), file=name)]


def split_key(problem: Problem) -> Problem:
    """Return the problem with the key of the values as its path. Charts print `<rule>: <key>: <message>`."""
    key, _, message = problem.message.partition(": ")
    return problem if problem.path or not message or " " in key else replace(problem, path=key, message=message)


def _read_version(helm: Path) -> tuple[int, ...]:
    try:
        done = subprocess.run([helm, "version", "--short"], capture_output=True, text=True, check=False)
    except OSError:
        return (0,)
    found = re.search(r"v(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0,)
