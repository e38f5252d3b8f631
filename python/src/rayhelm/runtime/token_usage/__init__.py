"""Tokens by tenant, counted in the replica whose engine makes them.

Ray Serve LLM uses `rayhelm.runtime.token_usage.engine.TokenCountingEngine` if `RAYLLM_VLLM_ENGINE_CLS` names it.

ledger     tokens by tenant since the last flush; pure
requests   running requests, whose tokens go into the ledger; pure
metrics    the counters `rayhelm_prompt_tokens` and `rayhelm_generation_tokens` of Ray
engine     vLLM's engine, with a ledger; the only module that imports Ray Serve LLM
"""
