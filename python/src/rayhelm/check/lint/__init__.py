"""Check a fleet or manifests before they reach a cluster: with charts, policies, Ray and vLLM."""
