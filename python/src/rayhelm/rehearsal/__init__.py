"""A fleet tried on a cluster without cards: its own releases with tiny models, under load, while something happens.

without_cards   the fleet's releases as such a cluster can run them
stage           installs them, waits for them, and takes them away again
caller          steady load; runs in a pod, as the fleet's own callers do
load            starts that pod, and reads what it saw
"""
