"""Redis as the stack in containers has it: image, command, options and confinement of `compose.yaml`."""

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
# The reaper is an image of its own, from a registry; these containers are removed by their fixture.
testcontainers_config.ryuk_disabled = True


class ComposedRedis:
    """One of the two Redis of the stack, in a container.

    Args:
        service: `cache` or `queue`.
        settings: that beat `.env`.
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
        """Whether it answers."""
        with redis.Redis.from_url(self.url) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    def kill(self) -> None:
        """It is gone at once."""
        self.container.get_wrapped_container().kill()

    def start(self) -> None:
        """It runs again, with the files it had."""
        self.container.get_wrapped_container().start()
        wait_for_port(self.port)


Start = Callable[..., ComposedRedis]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts one; each is gone afterwards."""
    with ExitStack() as running:

        def make(service: str, **settings: str) -> ComposedRedis:
            one = ComposedRedis(service, **settings)
            running.enter_context(one.container)
            eventually(one.is_up)
            return one

        yield make


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the developer's own reaches a test."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
