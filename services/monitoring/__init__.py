"""Monitoring: Grafana's dashboards, written in Python, and the configuration of Prometheus and Grafana."""
