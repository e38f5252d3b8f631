"""Start vLLM on a GPU with random weights of published shapes, and compare memory and speed with the planner.
`make bench-engine` writes result.json, and the tables of `docs/verification.md`.

Real: the engine with its profile run, compilation, CUDA graphs and kernels. Not there: HTTP, tokenization, Ray, and the
routing of trained experts. All requests of a load have the same lengths and start together, so that prompts and answers
do not mix as they do under constant load: throughput can be compared there, TTFT and TPOT only for single requests.
"""
