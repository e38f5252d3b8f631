"""The words of the project: what the prose check reads, and the check."""
