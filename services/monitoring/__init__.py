"""What watches the stack: Prometheus' configuration and alerts, and Grafana's dashboards, written in Python."""
