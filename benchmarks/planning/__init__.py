"""What the planner's commands take on large fleets, and how far its placement is from the optimum."""
