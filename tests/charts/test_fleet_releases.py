"""Helm 3, Helm 4 and HAProxy accept the committed platform, tenant and gateway values of the reference fleets."""

import re
from pathlib import Path

import pytest
import yaml

from charts.kit import HELMS, only, parsed
from gateway.kit.certificates import mount_certificates
from gateway.kit.process import check_config
from rayhelm.deploy.charts.helm import charts_dir, lint, render
from rayhelm.deploy.charts.models import CHARTS

FLEETS = charts_dir().parent / "values"
FILES = sorted(path for chart in ("gateway", "platform", "tenant") for path in FLEETS.glob(f"*/{chart}/**/*.yaml"))
GATEWAYS = [path for path in FILES if path.stem == "gateway"]


def chart_of(path: Path) -> str:
    return path.relative_to(FLEETS).parts[1]


def read_header(path: Path, what: str) -> str:
    """Read the release or namespace from the first line of a values file."""
    (found,) = re.findall(rf"{what} `([^`]+)`", path.read_text().splitlines()[0])
    return str(found)


def rendered(path: Path, helm: str = "4") -> str:
    return render(
        chart_of(path), read_header(path, "release"), read_header(path, "namespace"), [path], helm=HELMS[helm]
    )


def name(path: Path) -> str:
    return str(path.relative_to(FLEETS))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_both_helms_render_the_same(path: Path) -> None:
    assert parsed(rendered(path, "4")) == parsed(rendered(path, "3"))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_helm_has_no_complaints(path: Path) -> None:
    assert "0 chart(s) failed" in lint(chart_of(path), [path])


@pytest.mark.parametrize("path", FILES, ids=name)
def test_values_are_valid_and_the_file_is_named_after_the_release(path: Path) -> None:
    CHARTS[chart_of(path)].model_validate(yaml.safe_load(path.read_text()))
    assert read_header(path, "release") == path.stem


@pytest.mark.parametrize("path", GATEWAYS, ids=name)
def test_haproxy_takes_the_configuration(path: Path, tmp_path: Path) -> None:
    for file, text in only(parsed(rendered(path)), "ConfigMap")["data"].items():
        (tmp_path / file).write_text(text)
    mount_certificates(tmp_path, yaml.safe_load(path.read_text()))
    done = check_config(tmp_path)
    assert done.returncode == 0, done.stderr
