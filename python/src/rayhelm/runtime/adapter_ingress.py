"""Ingress of Ray Serve LLM that accepts the names of adapters, and further names of models.

Ray Serve LLM answers 404 to every name other than its models and `<model>:<adapter>`, and loads the latter from object
storage only. Here an adapter is part of every replica (vLLM's `lora_modules`), so a request with its name needs no
multiplexing: any replica of the base model serves it, and the engine finds the adapter by the same name. The engine
knows a model by one name, so an alias is replaced in the parsed request before it is sent to a replica.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from ray.llm._internal.serve.core.configs.openai_api_models import ModelList
from ray.llm._internal.serve.core.ingress.ingress import OpenAiIngress

__all__ = ["AdapterIngress"]


class AdapterIngress(OpenAiIngress):  # type: ignore[misc]
    """`OpenAiIngress` with further names. `adapters` has the base model of each adapter by name, and `aliases` the
    model behind each further name."""

    def __init__(
        self, *args: Any, adapters: Mapping[str, str], aliases: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._adapters = dict(adapters)
        self._aliases = dict(aliases or {})

    async def _get_model_id(self, model: str | None) -> str:
        if model in self._adapters:
            return str(model)
        return str(await super()._get_model_id(model))

    def _get_configured_serve_handle(self, model_id: str) -> Any:
        return super()._get_configured_serve_handle(self._adapters.get(model_id, model_id))

    async def _get_response(self, *, body: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        if body.model in self._aliases:
            body = body.model_copy(update={"model": self._aliases[body.model]})
        async for response in super()._get_response(body=body, **kwargs):
            yield response

    async def model(self, model_id: str) -> Any:
        """Return what `/v1/models` has of a model, adapter or alias; None if the name is unknown."""
        others = {**self._adapters, **self._aliases}
        found = await super().model(others.get(model_id, model_id))
        return found.model_copy(update={"id": model_id}) if found and model_id in others else found

    async def models(self) -> ModelList:
        """List models, adapters and aliases."""
        others = [found for name in (*self._adapters, *self._aliases) if (found := await self.model(name))]
        return ModelList(data=[*(await super().models()).data, *others])


# Ray Serve names the deployment after the class. With another name, the first adapter would replace the deployment, and
# the rules of Prometheus would not know it.
AdapterIngress.__name__ = OpenAiIngress.__name__
