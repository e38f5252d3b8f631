"""Testbed for the cluster tests: programs, a control plane of processes, simulated nodes, a stand-in for Ray.

Data flows one way: tools -> control_plane -> tests. It imports the toolkit and is not imported by it.
"""
