"""Where each model runs, how it is split, how many replicas, for whom, at what cost, and why.

planner.plan_fleet      from a fleet to a plan, by the stages memory, placement, access and explain
plan.Plan               every decision with its reason
memory.fit              whether a model fits a GPU, and what takes its memory
speed                   TTFT, TPOT and throughput of a shape
alternatives, what_if   other plans beside this one
"""
