"""Pods of the worker groups of a service: how many, of what size, and what a drain keeps."""
