"""Data path `Direct` where requests meet no replica, or several: an upgrade of the application, and the prefix cache.
Real Ray Serve and vLLM with a tiny model."""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from charts.kit import over
from rayhelm import processes
from rayhelm.run.local.state import EndpointState
from rayhelm.run.standin.checkpoint import write_checkpoint
from serve.kit import MODEL, RELEASE, TIMEOUT, TINY, Served, serve

pytestmark = [pytest.mark.serve, pytest.mark.timeout(1800)]
APPLICATIONS = ("chat", "shared")


def fix(replicas: int) -> dict[str, int]:
    return {"minReplicas": replicas, "maxReplicas": replicas, "targetOngoingRequests": 64}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Application `chat` has one replica, and `shared` two."""
    state = EndpointState(tmp_path_factory.mktemp("state"))
    source = str(write_checkpoint("LlamaForCausalLM", state.stand_ins))
    model = over(TINY, {"source": source, "router": {"kind": "PrefixAffinity"}})
    applications: dict[str, Any] = {
        name: {"routePrefix": f"/{name}", "models": {MODEL: over(model, {"autoscaling": fix(replicas)})}}
        for name, replicas in zip(APPLICATIONS, (1, 2), strict=True)
    }
    with serve(over(RELEASE, {"serve": {"applications": applications}}), "Direct", state) as served:
        yield served


def shared(served: Served, path: str = "/v1/chat/completions", **body: Any) -> str:
    """Send a request to the application `shared`, and return its id."""
    url = f"http://127.0.0.1:{served.http.base_url.port}/shared{path}"
    name, answer = served.send(url, **body)
    answer.raise_for_status()
    return name


def test_prompts_with_one_prefix_reach_one_replica(served: Served) -> None:
    replicas = {}
    for number in range(6):
        prefix = f"{number} " * 100
        names = [shared(served, messages=[{"role": "user", "content": f"{prefix} {turn}"}]) for turn in range(4)]
        files = [processes.wait_until(lambda n=n: served.engine_file(n), what="a line", timeout=900) for n in names]
        replicas[number] = files
    assert all(len(set(files)) == 1 for files in replicas.values())
    assert len({files[0] for files in replicas.values()}) == 2


def test_applications_are_upgraded_without_lost_requests(served: Served) -> None:
    """During the upgrade the one replica of `chat` stops before its successor starts."""
    root = f"http://127.0.0.1:{served.http.base_url.port}"
    is_over, ends = Event(), list[str]()

    def stream(application: str) -> None:
        while not is_over.is_set():
            answer = served.send(f"{root}/{application}/v1/chat/completions", stream=True, max_tokens=100)[1]
            assert answer.is_success, (answer.status_code, answer.text)
            ends.append(answer.text.rstrip().rsplit("\n", 1)[-1])

    def list_ids() -> set[str]:
        return {each["replica_id"] for name in APPLICATIONS for each in served.list_replicas(name)}

    def is_upgraded() -> bool | None:
        """KubeRay's probes ask `/-/healthz`."""
        assert served.http.get(f"{root}/-/healthz").status_code == 200
        for each in streams:
            assert not each.done(), each.exception()
        is_running = all(each["status"] == "RUNNING" for each in served.list_applications().values())
        return (is_running and len(now := list_ids()) == 3 and not before & now) or None

    before, config = list_ids(), copy.deepcopy(dict(served.config))
    for application in config["applications"]:
        application["args"]["llm_configs"][0]["engine_kwargs"]["max_num_seqs"] = 32
    with ThreadPoolExecutor(4) as pool:
        streams = [pool.submit(stream, name) for name in APPLICATIONS * 2]
        try:
            processes.wait_until(lambda: len(ends) > 8 or None, what="streams", timeout=TIMEOUT)
            served.dashboard.put("/api/serve/applications/", json=config).raise_for_status()
            processes.wait_until(is_upgraded, what="new replicas", timeout=TIMEOUT)
            seen = len(ends)
            processes.wait_until(lambda: len(ends) > seen + 8 or None, what="streams", timeout=TIMEOUT)
        finally:
            is_over.set()
        for each in streams:
            each.result()
    assert set(ends) == {"data: [DONE]"}
