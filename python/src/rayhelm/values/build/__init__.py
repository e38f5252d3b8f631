"""Typed values of each chart, built from a plan: one module for each chart, and what several of them share."""
