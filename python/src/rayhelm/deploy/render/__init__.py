"""Render a fleet file to the files of a GitOps repository, and write them to a folder."""
