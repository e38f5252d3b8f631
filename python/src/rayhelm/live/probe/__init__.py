"""Measure the pools of a live cluster: nodes of a pool → Jobs → results → measurements in a ConfigMap and a file."""
