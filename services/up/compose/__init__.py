"""Run the stack with Docker Compose: the services of `compose.yaml` as containers."""
