"""`rayhelm lint`: the verdicts of every layer before anything reaches a cluster, down to Ray and vLLM themselves."""

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from rayhelm.errors import FleetError, MissingError, Problem
from rayhelm.fleet_files import CHART, Rendered, render_fleet
from rayhelm.values.emit import changed

__all__ = ["Checked", "lint_fleet"]


@dataclass
class Checked:
    """What was checked, and what could not be."""

    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def lint_fleet(path: Path, *, ask_ray: bool) -> Checked:
    """Check everything. Raises FleetError with every problem, placed in the fleet file."""
    rendered = render_fleet(path)
    planned = f"{path}: plan of {', '.join(rendered.plan.models)} on {', '.join(rendered.plan.pools)}"
    checked = Checked([planned], warnings=list(rendered.plan.all_warnings))
    problems: list[Problem] = []
    configs: dict[str, str] = {}
    for service in rendered.values:
        try:
            configs[service] = _by_helm(rendered, service)
            checked.done.append(f"{service}: chart {CHART} renders and passes `helm lint --strict`")
        except FleetError as error:
            problems += [_placed(problem, service, rendered) for problem in error.problems]
        except MissingError as error:
            checked.left_out.append(f"{service}: {error.what}")
    problems += _by_ray(configs, rendered, checked) if ask_ray else []
    if problems:
        raise FleetError(problems)
    return checked


def _by_helm(rendered: Rendered, service: str) -> str:
    """The serveConfigV2 that helm renders."""
    from rayhelm.charts import helm

    values, version = changed(rendered.values[service]), rendered.kubernetes(service)
    objects = helm.template(CHART, service, rendered.namespace(service), values, kube_version=version)
    helm.lint(CHART, values, kube_version=version)
    return next(str(item["spec"]["serveConfigV2"]) for item in objects if item["kind"] == "RayService")


def _by_ray(configs: dict[str, str], rendered: Rendered, checked: Checked) -> list[Problem]:
    if find_spec("ray") is None or find_spec("vllm") is None:
        checked.left_out.append("serveConfigV2 by Ray and vLLM themselves: not installed here")
        return []
    from rayhelm.serving.check import check_serve_config

    problems: list[Problem] = []
    for service, text in configs.items():
        found = check_serve_config(text)
        problems += [_placed(problem, service, rendered) for problem in found]
        if not found:
            checked.done.append(f"{service}: Ray's schema, ray.serve.llm and vLLM's parser accept serveConfigV2")
    return problems


def _placed(problem: Problem, service: str, rendered: Rendered) -> Problem:
    """A problem of the values, at the model of the fleet file that it comes from."""
    models = rendered.loaded.fleet.models_of(service)
    named = next((name for name in models if name in f"{problem.path} {problem.message}"), models[0])
    here = rendered.loaded.document.problem(("models", named), problem.message)
    return replace(problem, file=here.file, line=here.line, path=problem.path or here.path)
