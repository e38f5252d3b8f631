"""Find the GPU pools of a live cluster: nodes → machines → pools → a fleet file."""
