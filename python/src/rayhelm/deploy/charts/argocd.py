"""Data of chart argocd: kinds that its AppProjects allow, and health checks for the ConfigMap `argocd-cm`."""

from importlib.resources import files
from pathlib import Path

import yaml

from rayhelm.deploy.charts.helm import charts_dir

__all__ = ["build_health_config", "load_allowed_kinds"]

_HEADER = """\
# Generated from resource_customizations/ by `make generate`. Do not edit.
# Health checks for Argo CD: kubectl -n argocd patch configmap argocd-cm --type merge --patch-file argocd-cm.yaml
# For the chart argo-cd: put the keys of `data` into `configs.cm`.
"""


def load_allowed_kinds() -> dict[str, dict[str, list[str]]]:
    """Return the kinds by AppProject and scope."""
    found: dict[str, dict[str, list[str]]] = yaml.safe_load(
        files("rayhelm").joinpath("data/argocd/kinds.yaml").read_text()
    )
    return found


def build_health_config() -> str:
    """Return the keys of `argocd-cm` with the scripts of resource_customizations/."""
    root = charts_dir().parent / "resource_customizations"
    data = {_build_key(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("health.lua"))}
    return _HEADER + yaml.dump({"data": data}, Dumper=_Dumper, sort_keys=True, width=120)


def _build_key(path: Path) -> str:
    group, kind, _ = path.parts
    return f"resource.customizations.health.{group}_{kind}"


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes texts of several lines as blocks."""


def _format_text(dumper: _Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _format_text)
