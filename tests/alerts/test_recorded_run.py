"""No alert fires over a recorded run of a live endpoint: under load, while it scales down, and while it is upgraded.

The recorded run is real: Ray Serve LLM with CPU stand-ins behind the gateway, under load and then idle, with an
autoscaling from 1 to 3 replicas and back. It takes 25 minutes, and most alerts are pending for up to an hour, so part
of the light load is repeated for longer, and the idle state at the end is held. Series of Kubernetes and of worker pods
are added, because the endpoint has none.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from alerts.kit import Case, run_cases
from rayhelm.deploy.render.files import render_fleet
from rayhelm.observe.check import metrics_of
from rayhelm.observe.rules.files import build_rule_files
from testbed.live_metrics.recording import FLEET, load_recorded
from testbed.live_metrics.recording.edit import Run, run_of
from testbed.live_metrics.recording.recorded import Values
from testbed.live_metrics.recording.server import read_rules

FIRED = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing",alertname!="Watchdog"}[1w]))'
SERVICE = 'namespace="models",rayhelm_dev_service="assistant"'
REPLICA = r'^ray_serve_deployment_replica_healthy\{.*deployment="LLMServer:chat".*replica="(\w+)"'
HOURS = 1.25
"""Hours for which the light load is repeated, and for which the last state is held."""


@cache
def rules() -> dict[str, str]:
    return build_rule_files(render_fleet(FLEET))


@cache
def recorded() -> Run:
    """The series that rules read."""
    read = {name for rules in read_rules().values() for rule in rules for name in metrics_of(rule["expr"])}
    return run_of(load_recorded()).select(read | {"up"})


def steps_of(hours: float) -> int:
    return int(hours * 3600 / recorded().step)


def normal() -> Run:
    """The recorded run with a long light load and a long idle time."""
    light = load_recorded().phase("light")
    middle = (light.start + light.end) // 2
    times = steps_of(HOURS) // (light.end - middle) + 1
    return recorded().repeat(middle, light.end, times).hold(steps_of(HOURS))


def always(steps: int, value: float = 1) -> Values:
    return (value,) * steps


def kubernetes(steps: int) -> dict[str, Values]:
    """What the operator and kube-state-metrics export of a healthy service."""
    return {
        'kuberay_service_condition_ready{namespace="models",name="assistant",condition="true"}': always(steps),
        'kube_deployment_status_replicas_available{namespace="gateway",deployment="gateway"}': always(steps, 2),
        'kube_secret_info{namespace="gateway",secret="gateway-keys-up"}': always(steps),
    }


def workers(run: Run) -> dict[str, Values]:
    """A worker pod for each replica of the chat model. It has a GPU, is scraped, and is removed 5 minutes after its
    replica, as Ray's autoscaler does."""
    found: dict[str, Values] = {}
    for series, healthy in run.having(REPLICA).series.items():
        match = re.search(REPLICA, series)
        assert match
        pod = (
            f'{SERVICE},rayhelm_dev_worker_group="chat",job="rayhelm-services",pod="w-{match[1]}",instance="{match[1]}"'
        )
        grace = steps_of(5 / 60)
        exists = [
            1.0 if any(each is not None for each in healthy[max(0, step - grace) : step + 1]) else None
            for step in range(len(healthy))
        ]
        used = [None if each is None else float(alive is not None) for each, alive in zip(exists, healthy, strict=True)]
        found[f"up{{{pod}}}"] = tuple(exists)
        found[f'ray_resources{{{pod},Name="GPU",State="USED"}}'] = tuple(used)
        free = tuple(None if each is None else 1 - each for each in used)
        found[f'ray_resources{{{pod},Name="GPU",State="AVAILABLE"}}'] = free
    return found


def upgraded() -> Run:
    """KubeRay starts a second Ray cluster during the light load, and removes the first one when the second is ready.

    The second cluster is the recorded run again, from its start on, with other pods and other replicas.
    """
    first, start = normal(), load_recorded().phase("start")
    begin = start.end + steps_of(HOURS / 2)
    ready = begin + start.end + steps_of(1 / 60)
    end = ready + steps_of(1 / 60)
    of_ray = 'job="rayhelm-services"'
    second = recorded().hold(steps_of(HOURS)).having(of_ray).relabel(of_second_cluster).shift(begin)
    gateway = first.without(of_ray).end_at(second.steps)
    run = gateway.join(first.having(of_ray).end_at(end), second)
    upgrade = 'kuberay_service_condition_upgrade_in_progress{namespace="models",name="assistant",condition="true"}'
    return run.add({**kubernetes(run.steps), upgrade: (*[None] * begin, *always(end - begin))})


def of_second_cluster(label: str, value: str) -> str:
    names = {"pod": "second", "SessionName": "session_second", "instance": f"second-{value}"}
    return names.get(label, f"second{value}" if label in ("WorkerId", "ReplicaId", "replica") else value)


def scaled_down() -> Run:
    run = normal()
    return run.add({**kubernetes(run.steps), **workers(run)})


RUNS = {"normal and scaled down": scaled_down, "upgraded": upgraded}


def case_of(name: str, run: Run, query: str, value: float | None) -> Case:
    end = f"{(run.steps - 1) * run.step}s"
    return Case(name, run.as_promtool(), {query: {end: value}}, step=f"{run.step}s", evaluate="1m")


@pytest.mark.parametrize("name", RUNS)
def test_no_alert_fires_in_a_recorded_run(name: str, tmp_path: Path) -> None:
    run_cases(tmp_path, rules(), [case_of(name, RUNS[name](), FIRED, None)])


def test_alert_fires_when_the_replicas_of_the_recorded_run_end(tmp_path: Path) -> None:
    run, middle = recorded().hold(steps_of(0.25)), load_recorded().phase("heavy").start
    replicas = run.having(REPLICA)
    broken = run.without(REPLICA).join(replicas.end_at(middle)).add(kubernetes(run.steps))
    query = 'count(count_over_time(ALERTS{alertname="NoReadyReplica",alertstate="firing"}[1w]))'
    run_cases(tmp_path, rules(), [case_of("broken", broken, query, 1)])
