"""Named templates take named arguments and check them."""

import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from charts.kit import HELMS, example
from rayhelm.deploy.charts.helm import charts_dir, render
from rayhelm.errors import FleetError

DEFINE = re.compile(r'\{\{-? define "([^"]+)"')
CALL = re.compile(r'include "([^"]+)" (\(dict "|\(?[\w.$]+)')
LIST_CALL = re.compile(r'include "([^"]+)" \((?:list|slice|compact|append|prepend|concat)\b')
POSITION = re.compile(r"\bindex [.$] \d|\b(?:first|last|rest|initial|slice) [.$](?=[ )|}])|\(len [.$]\)")


def unnamed_arguments(charts: Path) -> list[str]:
    """Calls with a list, templates that read arguments by position, and templates that do not check their dict."""
    found: list[str] = []
    defined: dict[str, str] = {}
    calls: dict[str, set[str]] = defaultdict(set)
    for path in sorted(charts.rglob("*")):
        if path.suffix not in (".tpl", ".yaml", ".txt") or not {"templates", "lib"} & set(path.parts[-5:-1]):
            continue
        text = path.read_text()
        found += [f"{path.name}: {name} is called with a list" for name in LIST_CALL.findall(text)]
        found += [f"{path.name}: {read} reads by position" for read in POSITION.findall(text)]
        _, *parts = DEFINE.split(text)
        defined |= dict(zip(parts[::2], parts[1::2], strict=True))
        for name, argument in CALL.findall(text):
            calls[name].add(argument)
    found += [
        f"{name} does not check its arguments"
        for name, body in defined.items()
        if calls[name] == {'(dict "'} and not name.endswith(".arguments") and '.arguments" (dict "template"' not in body
    ]
    return found


def test_chart_templates_take_named_arguments_and_check_them() -> None:
    assert unnamed_arguments(charts_dir()) == []


def test_planted_templates_with_unnamed_arguments_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "planted/templates"
    folder.mkdir(parents=True)
    (folder / "_list.tpl").write_text('{{- define "x.by" -}}\n{{ index . 1 }}{{ first $ }}\n{{- end }}\n')
    (folder / "list.yaml").write_text('a: {{ include "x.by" (list . "b") }}\n')
    (folder / "_dict.tpl").write_text('{{- define "x.unchecked" -}}\n{{ .name }}\n{{- end }}\n')
    (folder / "dict.yaml").write_text('a: {{ include "x.unchecked" (dict "name" "b") }}\n')
    assert unnamed_arguments(tmp_path) == [
        "_list.tpl: index . 1 reads by position",
        "_list.tpl: first $ reads by position",
        "list.yaml: x.by is called with a list",
        "x.unchecked does not check its arguments",
    ]


@pytest.mark.parametrize("helm", HELMS)
def test_missing_argument_fails_with_template_and_argument(helm: str, tmp_path: Path) -> None:
    copy = tmp_path / "tenant"
    shutil.copytree(charts_dir() / "tenant", copy)
    policy = copy / "templates/network/dns.yaml"
    policy.write_text(policy.read_text().replace(' "part" "dns"', ""))
    with pytest.raises(FleetError) as caught:
        render(str(copy), "research", "tenants", example("tenant/minimal"), helm=HELMS[helm])
    assert 'template tenant.partMetadata: the argument "part" is missing' in str(caught.value)
