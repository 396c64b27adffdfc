"""Grafana dashboards, defined in Python, and the configuration of Prometheus and Grafana."""
