"""The first fleet file of a team: its questions, the checks of the answers, and its text."""
