"""How the gateway's configuration reads: its templates, and the ConfigMap as kubectl prints it."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from charts import kit
from charts.kit import only
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.live.cluster.kubectl import find_kubectl

FOLDER = charts_dir() / "gateway/templates/config"
SECTIONS = ("global", "resolvers dns", "defaults", "frontend http", "frontend metrics", "backend tenants")


def test_templates_have_no_line_over_160_characters() -> None:
    found = [
        f"{path.name}:{number}: {len(line)} characters"
        for path in FOLDER.iterdir()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 160
    ]
    assert not found, "\n".join(found)


def test_templates_compute_no_name_and_parse_no_output() -> None:
    computed = re.compile(r"include (?!\")")
    parsed = re.compile(r"include \"[^|]*\|[^}]*\b(splitList|regex\w+)")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in FOLDER.iterdir()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if computed.search(line) or parsed.search(line)
    ]
    assert not found, "\n".join(found)


def test_one_template_has_the_sections_in_the_order_of_haproxy() -> None:
    lines = (FOLDER / "_haproxy.cfg.tpl").read_text().splitlines()
    found = [line for line in lines if re.match(r"(global|defaults|resolvers|frontend|backend)\b", line)]
    assert tuple(found[: len(SECTIONS)]) == SECTIONS


@pytest.mark.parametrize("name", ["minimal", "everything"])
def test_kubectl_prints_the_config_as_blocks(name: str, tmp_path: Path) -> None:
    config = only(kit.rendered(chart="gateway", base=f"gateway/{name}", release="main-gateway"), "ConfigMap")
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    command = [str(find_kubectl()), "annotate", "--local", "-f", str(file), "a=b", "-o", "yaml"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    styles = dict(re.findall(r"^  ([\w.-]+): (\S*)", text, re.MULTILINE))
    expected = {key: "|" if "\n" in value else '""' for key, value in config["data"].items()}
    assert {key: styles[key] for key in expected} == expected
