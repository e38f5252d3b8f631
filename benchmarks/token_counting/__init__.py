"""What counting tokens by tenant costs: `python -m token_counting`.

processor   vLLM's output processor alone, with and without the count
service     real Ray Serve LLM and vLLM on CPU behind the real gateway, two endpoints side by side
"""
