"""`make bench-gateway`: compare the gateway with vllm-router and the LiteLLM proxy in one run.

plan        loads, bodies and number of rounds
cores       half of the cores for the contender, the other half for load and upstream
upstream    one server that responds at once, and one that streams tokens with the time in each
contenders  the programs to measure, each with what it does with keys, limits and load balancing
load        requests per second and latency
streams     200 concurrent streams: the added time of the first token and of each token
report      medians, spread, ratios

All contenders run at the same time and are measured in turns, so that other load on the computer affects all of them.
"""
