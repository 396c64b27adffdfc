"""Run the services of `compose.yaml` as containers, with Docker Compose."""
