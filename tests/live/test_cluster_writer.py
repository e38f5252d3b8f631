"""Writes to an API server: paths, and what each answer means."""

from typing import Any

import pytest

from rayhelm.errors import MissingError, RayhelmError
from rayhelm.live.cluster.kinds import CONFIG_MAPS, JOBS
from rayhelm.live.cluster.reader import AbsentError, ForbiddenError, ReadError
from rayhelm.live.cluster.writer import ClusterWriter

JOB = {"metadata": {"name": "one", "namespace": "here"}}


class Answers:
    """Gives one answer to each request, and keeps the requests."""

    def __init__(self, status: int = 200, answer: Any = None) -> None:
        self.status, self.answer = status, {"message": "because"} if answer is None else answer
        self.requests: list[tuple[str, str, str]] = []

    def get(self, path: str) -> tuple[int, Any]:
        raise AssertionError(path)

    def send(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any]:
        self.requests.append((method, path, content_type))
        return self.status, self.answer


def test_writer_sends_each_change_to_its_path() -> None:
    answers = Answers()
    writer = ClusterWriter(answers, "a")
    writer.create(JOBS, JOB)
    writer.apply(CONFIG_MAPS, JOB)
    writer.delete(JOBS, "one", "here")
    jobs, map_ = "/apis/batch/v1/namespaces/here/jobs", "/api/v1/namespaces/here/configmaps/one"
    assert answers.requests == [
        ("POST", jobs, "application/json"),
        ("PATCH", f"{map_}?fieldManager=rayhelm&force=true", "application/apply-patch+yaml"),
        ("DELETE", f"{jobs}/one", "application/json"),
    ]


@pytest.mark.parametrize(
    ("status", "kind"), [(403, ForbiddenError), (404, AbsentError), (409, ReadError), (401, MissingError)]
)
def test_refused_change_raises_the_error_of_its_status(status: int, kind: type[RayhelmError]) -> None:
    with pytest.raises(kind):
        ClusterWriter(Answers(status), "a").create(JOBS, JOB)


def test_message_names_method_path_and_reason() -> None:
    with pytest.raises(ReadError, match=r"POST /apis/batch/v1/namespaces/here/jobs: 409 because"):
        ClusterWriter(Answers(409), "a").create(JOBS, JOB)


def test_deletion_of_an_absent_object_is_no_error() -> None:
    ClusterWriter(Answers(404), "a").delete(JOBS, "one", "here")


def test_forbidden_deletion_raises() -> None:
    with pytest.raises(ForbiddenError):
        ClusterWriter(Answers(403), "a").delete(JOBS, "one", "here")
