"""Check a fleet or manifests before anything reaches a cluster: charts, policies, Ray and vLLM."""
