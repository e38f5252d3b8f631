"""`make bench-gateway`: the gateway as it is shipped, against vllm-router and the LiteLLM proxy, in one run.

plan        how much, how often, and with which bodies
cores       one half of the cores for whoever is measured, the other for load and upstream
upstream    a server that answers at once, and one that streams tokens with the time in each
contenders  who is measured, each with what it offers of keys, limits and affinity
load        requests a second, and how long they take
streams     200 streams at once: what is added to the first token, and to each one
report      medians, spread, ratios

All stand at the same time and take turns in rounds, so that whatever else the computer does falls on all of them.
"""
