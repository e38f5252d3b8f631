"""Fleets that run without GPUs.

local                   `rayhelm up`: Ray, the gateway and Prometheus as processes of this computer
standin                 CPU stand-ins for models, as a change of values
rehearsal               a change under load, in pods of a cluster
"""
