"""`make up` with Docker Compose: the services of `compose.yaml` as containers."""
