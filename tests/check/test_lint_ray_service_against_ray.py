"""What lint knows of Ray Serve LLM without importing it, compared with Ray."""

import pytest

from rayhelm.check.lint.ray_service.applications import BUILDER_KEYS, LLM_CONFIG_KEYS, STRATEGIES
from rayhelm.deploy.serve_models import DP_BUILDER, LLM_BUILDER, PD_BUILDER

pytestmark = pytest.mark.serve


def test_keys_of_a_model_are_those_of_ray() -> None:
    from ray.serve.llm import LLMConfig

    assert set(LLM_CONFIG_KEYS) == set(LLMConfig.model_fields)


def test_strategies_are_those_of_ray() -> None:
    from ray.util.placement_group import VALID_PLACEMENT_GROUP_STRATEGIES

    assert set(STRATEGIES) == set(VALID_PLACEMENT_GROUP_STRATEGIES)


def test_builders_need_these_keys() -> None:
    from ray.llm._internal.serve.core.ingress.builder import LLMServingArgs
    from ray.llm._internal.serve.serving_patterns.data_parallel.builder import DPOpenAiServingArgs
    from ray.llm._internal.serve.serving_patterns.prefill_decode.builder import PDServingArgs

    arguments = {LLM_BUILDER: LLMServingArgs, DP_BUILDER: DPOpenAiServingArgs, PD_BUILDER: PDServingArgs}
    for builder, model in arguments.items():
        needed = {name for name, field in model.model_fields.items() if field.is_required()}
        assert set(BUILDER_KEYS[builder]) == needed
