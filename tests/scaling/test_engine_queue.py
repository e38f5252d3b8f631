"""The policy EngineQueue asks a real Prometheus, whose series have the labels of a recorded scrape."""

import re
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from rayhelm.processes import wait_until
from shared.ports import reserve_port
from shared.prometheus import serve_samples

pytestmark = pytest.mark.serve

SCRAPE = Path(__file__).parent / "scrapes/ray-service.prom"
STEP_S = 15
BEFORE_S, AFTER_S = 600, 900
"""Around the moment of the test: instant queries ask for now, whenever that comes."""
BUCKET = "ray_vllm_time_to_first_token_seconds_bucket"
KNOWN = "ray_serve_autoscaling_target_replicas"


def recorded(name: str) -> Iterator[dict[str, str]]:
    """Labels of the recorded series of that name."""
    for line in SCRAPE.read_text().splitlines():
        if line.startswith(f"{name}{{"):
            yield dict(re.findall(r'(\w+)="([^"]*)"', line))


def series(name: str, session: str, value: Mapping[int, float], **labels: str) -> list[str]:
    """`value` by second, relative to the moment of the test."""
    (first, *_) = recorded(name if name != "ray_vllm_num_requests_waiting" else BUCKET)
    named = {**first, "SessionName": session, **labels}
    if name == "ray_vllm_num_requests_waiting":
        named.pop("le")
    inside = ",".join(f'{label}="{text}"' for label, text in named.items())
    return [f"{name}{{{inside}}} {number} {int(now()) + second}" for second, number in value.items()]


@cache
def now() -> float:
    """The moment of the test: the first question, not the import, which may be half an hour before."""
    return time.time()


ALWAYS = range(-BEFORE_S, AFTER_S, STEP_S)


def is_scraped(session: str) -> list[str]:
    return series(KNOWN, session, dict.fromkeys(ALWAYS, 2.0))


def waits(session: str, replica: str, count: float, until: int = AFTER_S) -> list[str]:
    counts = dict.fromkeys((second for second in ALWAYS if second < until), count)
    return series("ray_vllm_num_requests_waiting", session, counts, ReplicaId=replica)


def first_tokens(session: str, replica: str, per_step: Mapping[float, float], from_: int = -BEFORE_S) -> list[str]:
    """Counters that grow with every step by so many first tokens of so many seconds; before `from_` they are not there,
    and they stand still where nothing comes."""
    bounds = [labels["le"] for labels in recorded(BUCKET)]
    return [
        line
        for bound in dict.fromkeys(bounds)
        for each in [sum(count for seconds, count in per_step.items() if seconds <= float(bound))]
        for line in series(
            BUCKET,
            session,
            {second: 100 + each * number for number, second in enumerate(ALWAYS) if second >= from_},
            ReplicaId=replica,
            le=bound,
        )
    ]


def recording() -> list[str]:
    """What Prometheus is to know."""
    return [
        *(line for session in ("busy", "idle", "young", "neighbor") for line in is_scraped(session)),
        *waits("busy", "a", 6),
        *waits("busy", "b", 2),
        *waits("busy", "another-model's", 50),
        *waits("neighbor", "a", 70),
        *waits("idle", "a", 3, until=-200),
        *first_tokens("busy", "a", {0.3: 6, 4.0: 2}),
        *first_tokens("busy", "b", {0.3: 8}),
        *first_tokens("busy", "another-model's", {70.0: 90}),
        *first_tokens("idle", "a", {}),
    ]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_samples(tmp_path_factory.mktemp("prometheus"), recording()) as url:
        yield url


def policy(url: str, session: str, **more):
    """As Serve makes it: by its path, out of what was pickled."""
    from ray.serve._private.autoscaling_state import _resolve_policy_callable
    from ray.serve.config import AutoscalingPolicy

    path = "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy"
    kwargs = {"prometheus_address": url, "session": session, "ttft_s": 1.0, "fetch_interval_s": 0.2, **more}
    return _resolve_policy_callable(AutoscalingPolicy(policy_function=path, policy_kwargs=kwargs))


def context(ongoing: float = 18, state: dict[str, object] | None = None):
    """Two replicas that aim at ten requests each."""
    from ray.serve._private.common import DeploymentID, ReplicaID

    deployment = DeploymentID("LLMServer:tiny", "llm")
    return SimpleNamespace(
        config=SimpleNamespace(get_target_ongoing_requests=lambda: 10),
        policy_state={"corrected_at": 0.0} if state is None else state,
        current_time=1000.0,
        total_num_requests=ongoing,
        current_num_replicas=2,
        target_num_replicas=2,
        running_replicas=[ReplicaID("a", deployment), ReplicaID("b", deployment)],
        deployment_name=deployment.name,
    )


def looked(asked):
    """What it sees, once the first answers are there."""
    wait_until(lambda: asked.prometheus_results, what="an answer of Prometheus", timeout=300)
    return asked._measure(context())


def test_busy_model_is_measured_by_its_own_replicas(prometheus):
    asked = policy(prometheus, "busy")
    seen = looked(asked)
    assert seen.waiting == pytest.approx(8)
    assert seen.in_time == pytest.approx(14 / 16, abs=0.01)
    replicas, state = asked(context())
    assert replicas == 3
    assert state == {"correction": 0.85, "corrected_at": 1000.0}


def test_only_the_queue_counts_without_a_ttft_limit(prometheus):
    seen = looked(policy(prometheus, "busy", ttft_s=None))
    assert (seen.waiting, seen.in_time) == (pytest.approx(8), None)


@pytest.mark.parametrize("session", ["idle", "young"])
def test_missing_series_mean_an_idle_engine(prometheus, session):
    """Gauges vanish 20 s after an engine idles; counters are not there before the first request."""
    asked = policy(prometheus, session)
    seen = looked(asked)
    assert (seen.waiting, seen.in_time) == (0, None)
    assert asked(context(ongoing=18))[0] == 2


def test_rule_of_ray_applies_when_the_cluster_is_not_scraped(prometheus):
    asked = policy(prometheus, "unknown")
    seen = looked(asked)
    assert (seen.waiting, seen.in_time) == (None, None)
    assert [asked(context(ongoing=load))[0] for load in (0, 18, 21, 200)] == [0, 2, 3, 20]


def test_rule_of_ray_applies_when_answers_have_expired(prometheus):
    asked = policy(prometheus, "busy", cache_ttl_s=3600, fetch_interval_s=3600)
    assert looked(asked).waiting == pytest.approx(8)
    asked._cache.timestamp -= 3601
    assert asked._measure(context()).waiting is None
    assert asked(context(ongoing=18))[0] == 2


def test_rule_of_ray_applies_without_prometheus():
    with reserve_port() as port:
        asked = policy(f"http://127.0.0.1:{port}", "busy")
        assert asked._measure(context()).waiting is None
        assert [asked(context(ongoing=load))[0] for load in (1, 18, 21)] == [1, 2, 3]
