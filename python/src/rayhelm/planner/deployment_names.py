"""Names that Ray Serve LLM gives to the deployments of a plan."""

from rayhelm.planner.plan import ModelPlan

__all__ = ["name_llm_deployment"]


def name_llm_deployment(plan: ModelPlan) -> str:
    """Return the deployment of the engine that sends the answers: the class of the server and the model
    (`ray/llm/_internal/serve/core/server/builder.py` of Ray 2.60)."""
    server = "DPServer" if plan.data_parallel_size > 1 else "LLMServer"
    if plan.prefill_decode:  # `Decode:` and the class PDDecodeServer: see build_pd_openai_app
        server = "Decode"
    return f"{server}:{plan.served_as.replace('/', '--').replace('.', '_')}"
