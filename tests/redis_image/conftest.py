"""Run Redis in a container with the image, command, options and restrictions of `compose.yaml`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from rewardstack.settings import DEFAULTS
from tests.support.compose import ComposeStack
from tests.support.servers import free_port, wait_for_port
from tests.support.waiting import eventually

PORT = 6379
# Ryuk, which removes containers, would need another image; here, the fixture removes the containers.
testcontainers_config.ryuk_disabled = True


class ComposedRedis:
    """One of the stack's two Redis servers, in a container.

    Args:
        service: `cache` or `queue`.
        settings: settings that override `.env`.
    """

    def __init__(self, service: str, **settings: str) -> None:
        self.stack = ComposeStack((), **settings)
        configuration = self.stack.configuration()
        spec = configuration["services"][service]
        self.port = free_port()
        password = self.stack.secret(f"{service}_server_password")
        self.url = f"redis://server:{password}@127.0.0.1:{self.port}/0"
        confinement = {name: spec[name] for name in ("user", "cap_drop", "security_opt", "read_only")}
        self.container = DockerContainer(spec["image"]).with_bind_ports(PORT, self.port).with_command(spec["command"])
        self.container.with_kwargs(entrypoint=spec["entrypoint"], **confinement)
        for secret in spec["secrets"]:
            file = configuration["secrets"][secret["source"]]["file"]
            self.container.with_volume_mapping(file, f"/run/secrets/{secret['target']}", "ro")
        for mount in spec["volumes"]:
            if mount["type"] == "bind":
                self.container.with_volume_mapping(mount["source"], mount["target"], "ro")
        for path in spec.get("tmpfs", []):
            self.container.with_tmpfs_mount(path)

    def is_up(self) -> bool:
        """Return whether it answers a ping."""
        with redis.Redis.from_url(self.url) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    def kill(self) -> None:
        """Kill it."""
        self.container.get_wrapped_container().kill()

    def start(self) -> None:
        """Start it again with the files that it had."""
        self.container.get_wrapped_container().start()
        wait_for_port(self.port)


Start = Callable[..., ComposedRedis]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a `ComposedRedis`; all are removed at the end."""
    with ExitStack() as running:

        def make(service: str, **settings: str) -> ComposedRedis:
            one = ComposedRedis(service, **settings)
            running.enter_context(one.container)
            eventually(one.is_up)
            return one

        yield make


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's settings from the environment."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
