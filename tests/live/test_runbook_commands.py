"""The commands of docs/runbooks would run: syntax, subcommands, options, kinds, namespaces, labels and containers."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import rendered
from rayhelm.deploy.charts.helm import Loader
from rayhelm.deploy.render.files import build_manifests, render_fleet
from shared.runbook_checks import Objects, check_command, read_objects
from shared.runbook_commands import Command, read_commands

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/runbooks").glob("*.md"))
FLEETS = ("homelab", "three-tiers")
"""Reference fleets with every chart, download Jobs, several worker groups and a gateway with two clusters."""
SET = "export NAMESPACE=...\nexport SERVICE=...\n"


@cache
def rendered_objects() -> Objects:
    # No reference fleet runs the doctor in the cluster.
    platform = rendered(base="platform/everything", chart="platform")
    return read_objects([*platform, *(item for fleet in FLEETS for item in render_objects(fleet))])


def render_objects(fleet: str) -> Iterator[Any]:
    texts = build_manifests(render_fleet(ROOT / "values" / fleet / "fleet.yaml")).values()
    return (item for text in texts for item in yaml.load_all(text, Loader=Loader) if item)


SMALL = Objects()
SMALL.pods = [
    ({"rayhelm.dev/service": "chat", "rayhelm.dev/role": "head"}, {"ray-head"}),
    ({"rayhelm.dev/service": "chat", "rayhelm.dev/role": "worker"}, {"ray-worker"}),
]
SMALL.labels["pod"] = [labels for labels, _ in SMALL.pods]
SMALL.labels["job"] = [{"app.kubernetes.io/instance": "chat"}]
"""Objects of the planted mistakes: they need no render."""


def problems_of(page: str, folder: Path, objects: Objects) -> list[str]:
    commands, reported = read_commands(page, folder)
    found = [f"{command}: {problem}" for command in commands for problem in check_command(command, objects)]
    return [*reported, *found]


def problems_of_block(block: str, folder: Path) -> str:
    return "\n".join(problems_of(f"```sh\n{SET}{block}\n```\n", folder, SMALL))


def test_commands_of_the_runbooks_would_run(tmp_path: Path) -> None:
    """One test for all pages, because the objects are rendered once."""
    found = {}
    for page in PAGES:
        folder = tmp_path / page.stem
        folder.mkdir()
        found[page.name] = problems_of(page.read_text(), folder, rendered_objects())
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_every_runbook_has_commands_that_are_checked(tmp_path: Path) -> None:
    without = []
    for page in PAGES:
        folder = tmp_path / page.stem
        folder.mkdir()
        if page.name != "README.md" and not [
            each for each in read_commands(page.read_text(), folder)[0] if not each.is_inline
        ]:
            without.append(page.name)
    assert without == []


def test_commands_in_loops_and_substitutions_are_read_with_their_values(tmp_path: Path) -> None:
    block = (
        "```sh\n"
        f"{SET}for pod in $(kubectl get pods -n $NAMESPACE -l rayhelm.dev/role=worker -o name); do\n"
        "  kubectl logs -n $NAMESPACE $pod | head -1\ndone\n```\nThen `helm rollback chat`.\n"
    )
    commands, reported = read_commands(block, tmp_path)
    assert reported == []
    assert [str(each) for each in commands] == [
        "kubectl get pods -n ... -l rayhelm.dev/role=worker -o name",
        "kubectl logs -n ... pod/rayhelm.dev/role=worker",
        "helm rollback chat",
    ]
    assert commands[-1] == Command(("helm", "rollback", "chat"), is_inline=True)


@pytest.mark.parametrize(
    "block",
    [
        "kubectl get pods -n $NAMESPACE -l rayhelm.dev/service=$SERVICE,rayhelm.dev/role=head -o wide",
        "kubectl get jobs -n $NAMESPACE -l app.kubernetes.io/instance=$SERVICE",
        "kubectl exec -it -n $NAMESPACE pod/x -c ray-head -- sh -c 'echo -l'",
        "kubectl get nodes",
        "kubectl top pod x -n $NAMESPACE",
        "kubectl debug node/x -it --image=busybox -- true",
        "helm rollback $SERVICE -n $NAMESPACE",
        "rayhelm doctor fleet.yaml --check quota",
        "curl -sS -G http://localhost:9090/api/v1/query --data-urlencode 'query=rayhelm:replicas'",
    ],
)  # fmt: skip
def test_right_commands_have_no_problem(block: str, tmp_path: Path) -> None:
    assert problems_of_block(block, tmp_path) == ""


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("for pod in x; do kubectl get nodes", "syntax error"),
        ("kubectl get pods -n $NAMESPCE", "NAMESPCE: unbound variable"),
        ("kubectll get nodes", "kubectll: command not found"),
        ("kubectl exec -n $NAMESPACE x -- sh -c 'for p in x; do'", "syntax error"),
        ("kubectl show nodes", "no subcommand of kubectl: show nodes"),
        ("kubectl get nodes --wider", "no option --wider of kubectl get"),
        ("kubectl logs -A -l rayhelm.dev/role=head", "no option -A of kubectl logs"),
        ("kubectl get rayservers -A", "no kind: rayservers"),
        ("kubectl describe rayservers/chat -n $NAMESPACE", "no kind: rayservers"),
        ("kubectl get pods", "no namespace"),
        ("kubectl get pods -n gateway", "namespace gateway is fixed"),
        ("helm rollback chat -n search", "namespace search is fixed"),
        ("kubectl get pods -A -l rayhelm.dev/services=chat", "no pod has the labels"),
        ("kubectl get pods -A -l rayhelm.dev/role=leader", "no pod has the labels"),
        ("kubectl get pods,jobs -n $NAMESPACE -l rayhelm.dev/service=$SERVICE", "no job has the labels"),
        ("kubectl logs -n $NAMESPACE x -c ray-header", "no container ray-header"),
        ("kubectl logs -n $NAMESPACE -l rayhelm.dev/role=worker -c ray-head", "no container ray-head in pods"),
        (
            "head=$(kubectl get pods -n $NAMESPACE -l rayhelm.dev/role=head -o name)\n"
            "kubectl logs -n $NAMESPACE $head -c ray-worker",
            "no container ray-worker in pods with rayhelm.dev/role=head",
        ),
        ("helm undo chat -n $NAMESPACE", "no subcommand of helm: undo"),
        ("helm rollback chat -n $NAMESPACE --last", "no option --last of helm rollback"),
        ("rayhelm docter fleet.yaml", "no command of rayhelm: docter"),
        ("rayhelm doctor fleet.yaml --only quota", "--only"),
        ("rayhelm lint fleet.yaml other.yaml more.yaml", "no such argument"),
        ("rayhelm doctor fleet.yaml --check quotas", "no check of rayhelm doctor: quotas"),
        ("curl --silently http://localhost:9090", "no option of curl that runbooks use: --silently"),
        ("curl -G http://localhost:9090 --data-urlencode 'query=rayhelm:replica'", "rayhelm:replica"),
        ("curl -G http://localhost:9090 --data-urlencode 'query=sum(up'", "cannot parse"),
    ],
)  # fmt: skip
def test_planted_mistake_of_a_command_is_found(block: str, expected: str, tmp_path: Path) -> None:
    assert expected in problems_of_block(block, tmp_path)
