"""Tasks: what the data files say, and what a wrong one is refused for."""

import pytest
from pydantic import ValidationError

from rayhelm.facts import load_catalog
from rayhelm.facts.tasks import TaskKind, load_tasks, ray_service_data
from rayhelm.runtime import speech


def test_every_task_of_the_model_catalog_has_a_file() -> None:
    assert {task for model in load_catalog().models() for task in model.tasks} <= set(load_tasks())


def test_tasks_with_operations_have_a_test_request() -> None:
    for task in load_tasks().values():
        assert bool(task.operations) == (task.test_request is not None)
        assert task.operations or task.is_any_model_allowed


def test_chart_data_of_the_ray_service_leaves_out_tasks_without_vllm() -> None:
    assert set(ray_service_data()) == {"chat", "embed", "rerank", "transcribe"}


def test_application_of_speak_is_in_the_runtime() -> None:
    application = load_tasks()["speak"].application
    assert application
    assert application.import_path == f"{speech.__name__}:{speech.build_app.__name__}"


def test_task_with_an_application_and_vllm_is_refused() -> None:
    application = {"import_path": "a:b", "deployment": "C"}
    with pytest.raises(ValidationError, match="needs `server: application`"):
        TaskKind.model_validate({"about": "x", "server": "vllm", "application": application})
