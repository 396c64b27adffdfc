"""Grafana dashboards, defined in Python, and the configuration files of Prometheus and Grafana."""
