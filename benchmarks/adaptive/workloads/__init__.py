"""Workloads that none of the papers has."""
