"""The planner: `planner.plan_fleet` runs its stages memory, placement, access and explain."""
