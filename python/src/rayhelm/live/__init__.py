"""Live clusters.

cluster                 reads and writes objects through the API server
discovery               pools, from the labels and resources of nodes
probe                   measures GPUs, networks and storage
doctor                  what is wrong with an installation
traffic, cost, bench    what the fleet serves, costs and reaches
"""
