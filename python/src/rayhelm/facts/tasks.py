"""Tasks of models (chat, embed, ...): one file in `data/tasks/` each.

The fleet file, the planner, the charts and `rayhelm up` read these files; a new task that vLLM serves is one more file.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed

__all__ = [
    "DATA_PATHS",
    "DataPath",
    "Task",
    "TaskKind",
    "VllmTask",
    "gateway_data",
    "get_task",
    "load_tasks",
    "ray_service_data",
]

_FOLDER = Path(__file__).parent.parent / "data" / "tasks"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


JsonKind = Literal["string", "array", "object"]
DataPath = Literal["Python", "HAProxy", "Direct"]
"""Way of a request inside a Ray cluster: `serve.dataPath` of chart `ray-service`."""
DATA_PATHS: tuple[DataPath, ...] = ("Python", "HAProxy", "Direct")
"""In the order of what they serve: the first ones have the routes of Ray's ingress, the last one all routes of vLLM."""


class TaskOutput(Closed):
    """Fields of a JSON body that decide how many output tokens a request may get: tokens times copies times batches."""

    tokens: list[str] = Field(min_length=1)
    """Fields with the largest number of output tokens. The gateway takes the largest of them."""
    copies: str | None = None
    """Field with the number of answers to a prompt."""
    batches: list[str] = []
    """Fields with a prompt, or with a list of prompts that are each answered."""


class TaskOperation(Closed):
    """A path that clients may call."""

    method: Literal["GET", "POST"]
    body: Literal["json", "stream"]
    """How the gateway finds the model: `json` reads it from the body, `stream` takes it from the path and does not read
    the body."""
    required: list[dict[str, list[JsonKind]]] = []
    """Fields that a JSON body must have beside `model`, with their kinds: all of one of these sets."""
    is_direct: bool = False
    """Only vLLM itself has it, so it needs the data path `Direct`: Ray's ingress answers 404, or cannot serve it."""
    reports_usage: bool = False
    """Responses have the number of tokens in `usage`."""
    usage_form: Literal["completions", "responses", "messages"] = "completions"
    """Form of `usage`. `completions`: `total_tokens`, in a stream if `stream_options` asks for it. `responses`: the
    same, always. `messages`: `input_tokens` and `output_tokens`, always."""
    state: list[str] = []
    """Fields that continue what an earlier request left in one replica."""
    pairs: list[str] = []
    """Fields with a text, or with a list of texts that are each paired with another text: a prompt for each pair."""
    output: TaskOutput | None = None
    """None: the operation generates no tokens, or they have no bound."""


class TaskRequest(Closed):
    """A small request that the engine has to compute."""

    path: str
    """`{model}` stands for the model's name."""
    body: dict[str, str | int] | None = None
    """JSON body without the key `model`, which is added. None: a GET request."""


class TaskApplication(Closed):
    """A Ray Serve application that is part of rayhelm."""

    import_path: str
    """`module:builder`, as Ray Serve imports it."""
    deployment: str
    """Name of the deployment in it that holds the GPU."""


class TaskKind(Closed):
    """One task."""

    about: str
    server: Literal["vllm", "application"]
    """`vllm`, or `application`: a Ray Serve application without vLLM, so vLLM's memory accounting does not apply."""
    application: TaskApplication | None = None
    """The application, if it is part of rayhelm. None: the fleet file names it."""
    generates_tokens: bool = False
    """Decodes token by token: `slo.tpot`, prices per token and the load of the KV cache apply."""
    needs_output_tokens: bool = False
    """`traffic.outputTokens` is required."""
    has_shared_prefix: bool = False
    """Prompts of several requests begin with the same text, so routing by prefix can be faster."""
    is_any_model_allowed: bool = False
    """Any model can have this task, also one whose entry in the catalog does not list it."""
    engine_arguments: dict[str, str] = {}
    """vLLM engine arguments that follow from the task."""
    operations: dict[str, TaskOperation] = {}
    """Paths of the upstream API that the gateway serves. Empty: the fleet file names them."""
    test_request: TaskRequest | None = Field(default=None)
    """Sent by `helm test` and `rayhelm up`. None: nothing is sent."""

    @property
    def reports_usage(self) -> bool:
        """Whether an operation does, so that a gateway can limit its tokens."""
        return any(operation.reports_usage for operation in self.operations.values())

    @property
    def has_cache_salt(self) -> bool:
        """Whether requests have vLLM's field `cache_salt`, which the gateway sets."""
        return self.server == "vllm" and all(operation.body == "json" for operation in self.operations.values())

    @model_validator(mode="after")
    def _check_application(self) -> Self:
        if self.application and self.server != "application":
            raise ValueError("`application` needs `server: application`")
        return self


@cache
def load_tasks() -> dict[str, TaskKind]:
    """Return every task by name."""
    return {name: TaskKind.model_validate(_read(name)) for name in _list_names()}


def get_task(name: str) -> TaskKind:
    return load_tasks()[name]


def gateway_data() -> dict[str, Any]:
    """Return the data of each task for the templates of chart `gateway`."""
    fields = {"operations", "has_shared_prefix"}
    return {
        name: task.model_dump(mode="json", include=fields) | {"has_cache_salt": task.has_cache_salt}
        for name, task in load_tasks().items()
    }


def ray_service_data() -> dict[str, Any]:
    """Return the data of each task for the templates of chart `ray-service`."""
    fields = {"engine_arguments", "has_shared_prefix", "test_request"}
    return {
        name: task.model_dump(mode="json", include=fields, exclude_none=True)
        for name, task in load_tasks().items()
        if task.server == "vllm"
    }


@cache
def _list_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def _read(name: str) -> Any:
    return yaml.load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=_LOADER)


if TYPE_CHECKING:
    Task = str
    VllmTask = str
else:  # the types list the files, so that schemas and error messages name each task
    Task = Literal[_list_names()]
    VllmTask = Literal[tuple(name for name, task in load_tasks().items() if task.server == "vllm")]
