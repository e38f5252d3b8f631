"""Reading from an API server: pages, and what each failure says."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from rayhelm.errors import MissingError
from rayhelm.live.cluster.kinds import NODES, PODS, RAY_SERVICES
from rayhelm.live.cluster.reader import AbsentError, ClusterReader, ForbiddenError, ReadError, check_version, connect
from rayhelm.live.cluster.recorded import RecordedTransport, Recording

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: there, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {token: x}}]
contexts: [{name: there, context: {cluster: there, user: me}}]
current-context: there
"""


class Pages:
    """A list of five objects in three pages."""

    def __init__(self) -> None:
        self.queries: list[dict[str, list[str]]] = []

    def get(self, path: str) -> tuple[int, Any]:
        query = parse_qs(urlsplit(path).query)
        self.queries.append(query)
        start = int(query.get("continue", ["0"])[0])
        items = [{"metadata": {"name": str(index)}} for index in range(start, min(start + 2, 5))]
        return 200, {"items": items, "metadata": {"continue": str(start + 2) if start + 2 < 5 else ""}}


class Status:
    """A server that answers every request with one status."""

    def __init__(self, status: int) -> None:
        self.status = status

    def get(self, path: str) -> tuple[int, Any]:
        return self.status, {"message": "why"}


def test_list_has_the_objects_of_all_pages_with_their_kind() -> None:
    pages = Pages()
    found = ClusterReader(pages).list(RAY_SERVICES, labels="a=b")
    assert [item["metadata"]["name"] for item in found] == ["0", "1", "2", "3", "4"]
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("ray.io/v1", "RayService")}
    assert [query["labelSelector"] for query in pages.queries] == [["a=b"]] * 3


def test_long_list_reports_each_part_but_the_last() -> None:
    reader, reported = ClusterReader(Pages()), list[str]()
    reader.on_part = reported.append
    reader.list(NODES)
    assert reported == ["nodes: 2 read, more to follow", "nodes: 4 read, more to follow"]


class Slow(Pages):
    """A server that counts what is left, and whose second part does not come."""

    def get(self, path: str) -> tuple[int, Any]:
        if "continue=" in path:
            raise MissingError("cluster `there` does not answer: timed out", "kubectl config get-contexts")
        status, answer = super().get(path)
        return status, answer | {"metadata": {**answer["metadata"], "remainingItemCount": 3}}


def test_server_that_stops_in_a_list_is_not_taken_for_a_missing_cluster() -> None:
    reader, reported = ClusterReader(Slow()), list[str]()
    reader.on_part = reported.append
    with pytest.raises(ReadError, match=r"timed out\. It answered before: 2 nodes were read"):
        reader.list(NODES)
    assert reported == ["nodes: 2 read, 3 to follow"]


class Expired(Pages):
    """A server that forgets a list after its first part."""

    def get(self, path: str) -> tuple[int, Any]:
        query = parse_qs(urlsplit(path).query)
        if "continue" in query:
            return 410, {"message": "The provided continue parameter is too old"}
        if "limit" in query:
            return super().get(path)
        return 200, {"items": [{"metadata": {"name": str(index)}} for index in range(5)]}


def test_list_is_read_again_in_one_part_when_its_rest_is_gone() -> None:
    found = ClusterReader(Expired()).list(NODES)
    assert [item["metadata"]["name"] for item in found] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"items": [], "metadata": {"continue": "same"}}, "the same part again and again"),
        ({"items": {}}, "no list of objects"),
        ({"items": [1]}, "no list of objects"),
        ({"items": [], "metadata": []}, "no list of objects"),
    ],
    ids=["repeated", "mapping", "number", "metadata"],
)
def test_list_of_another_form_is_refused(answer: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        ClusterReader(RecordedTransport({"/api/v1/nodes": answer})).list(NODES)


def test_paths_name_group_namespace_and_object() -> None:
    assert NODES.path() == "/api/v1/nodes"
    assert PODS.path("lab", "one") == "/api/v1/namespaces/lab/pods/one"
    assert RAY_SERVICES.path("lab") == "/apis/ray.io/v1/namespaces/lab/rayservices"
    assert RAY_SERVICES.resource == "rayservices.ray.io"


@pytest.mark.parametrize(
    ("status", "error"), [(403, ForbiddenError), (404, AbsentError), (500, ReadError), (401, MissingError)]
)
def test_each_refusal_has_an_error_of_its_own(status: int, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        ClusterReader(Status(status)).list(PODS)
    assert type(raised.value) is error


def test_connect_fails_with_a_fix_when_no_cluster_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    with pytest.raises(MissingError, match=r"cluster `there` at http://127\.0\.0\.1:1 does not answer") as raised:
        connect(kubeconfig=file)
    assert "kubectl config get-contexts" in raised.value.how


@pytest.mark.parametrize("text", ["{{", "", "[]"])
def test_connect_fails_with_a_fix_when_the_kubeconfig_is_broken(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(MissingError, match="no cluster"):
        connect(kubeconfig=file)


def test_connect_names_a_kubeconfig_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"there is no file .*nowhere"):
        connect(kubeconfig=tmp_path / "nowhere")


def test_connect_refuses_a_context_that_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    with pytest.raises(MissingError, match="nowhere"):
        connect("nowhere", file)


def test_recording_answers_as_the_server_did() -> None:
    recording = Recording(Pages())
    ClusterReader(recording).list(PODS)
    again = RecordedTransport(recording.answers, frozenset({NODES.path()}))
    assert again.get(f"{PODS.path()}?limit=500")[0] == 200
    with pytest.raises(ForbiddenError):
        ClusterReader(again).list(NODES)
    with pytest.raises(AbsentError):
        ClusterReader(again).list(RAY_SERVICES)


class Answer:
    """A server that answers every request with one object."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def get(self, path: str) -> tuple[int, Any]:
        return 200, self.answer


@pytest.mark.parametrize("answer", [{"message": "<html>log in</html>"}, {}])
def test_page_of_a_proxy_is_not_taken_for_an_empty_cluster(answer: object) -> None:
    with pytest.raises(MissingError, match="what answers for cluster `there` is no Kubernetes API server") as raised:
        check_version(ClusterReader(Answer(answer), "`there`"))
    assert "kubectl config get-contexts" in raised.value.how


def test_forbidden_version_has_the_role_that_allows_it() -> None:
    with pytest.raises(MissingError, match="forbids to read its version: GET /version: 403 why") as raised:
        check_version(ClusterReader(Status(403), "`there`"))
    assert "system:public-info-viewer" in raised.value.how
