"""Ray Serve's REST API, without Ray."""

import httpx

from rayhelm.run.local.client import ServeApi

RUNNING = {
    "proxies": {"node": {"status": "HEALTHY"}},
    "applications": {
        "chat": {
            "status": "RUNNING",
            "message": "",
            "deployments": {"LLMServer": {"target_num_replicas": 2, "replicas": [{"state": "RUNNING"}]}},
        }
    },
}


def ask(answer: httpx.Response | httpx.TransportError) -> ServeApi:
    def respond(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, httpx.Response):
            return answer
        raise answer

    return ServeApi(httpx.Client(base_url="http://ray.example", transport=httpx.MockTransport(respond)))


def test_status_counts_replicas() -> None:
    status = ask(httpx.Response(200, json=RUNNING)).get_status()
    assert status is not None
    assert (status.is_running, status.replicas, status.proxies) == (True, (1, 2), ("HEALTHY",))


def test_failed_answers_are_no_status() -> None:
    """Ray 2.60's API answered 500 while Serve replaced replicas; `rayhelm up` asks again."""
    assert ask(httpx.Response(500, text="Server got itself in trouble")).get_status() is None
    assert ask(httpx.ConnectError("refused")).get_status() is None
