"""What the cluster tests stand on: programs, a control plane made of processes, simulated nodes, a stand-in for Ray.

Data flows one way: tools -> control_plane -> tests. The testbed may ask the toolkit, never the other way round.
"""
