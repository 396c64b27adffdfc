"""What a test needs of the machine: a fixture each, which marks the test and skips it where that is missing.

A fixture or a test that starts processes of its own names one of them. Tests that name none, and are not marked
`nightly`, are fast: `make check` runs them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.models import environment
from services.models.environment import Models
from services.stack import packages, settings
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.up.compose import engine
from tests.helm.rendering import helm
from tests.support import compose
from tests.support.disk import Disk

MARKERS = ("engine", "model", "stack", "process")
"""A test that has the fixture `needs_engine` has the marker `engine`, and so on; heaviest first."""
NIGHTLY = "nightly"
"""The marker of tests that take too long for `make test`; those that need a model have it, too."""


def is_fast(item: pytest.Item) -> bool:
    """Return whether `make check` runs a test."""
    return not any(map(item.get_closest_marker, (*MARKERS, NIGHTLY)))


@contextmanager
def no_programs() -> Iterator[None]:
    """Hide every program of the machine: nothing is on PATH, nor where Debian keeps nginx."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        patch.setattr(packages, "SYSTEM_DIRECTORIES", ())
        yield


@pytest.fixture(scope="session")
def needs_process() -> None:
    """Processes that live for one test or one module."""


def _program(name: str) -> None:
    if name not in packages.find() and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def needs_nginx(needs_process: None) -> None:
    """An nginx of the test's own."""
    _program("nginx")


@pytest.fixture(scope="session")
def needs_redis(needs_process: None) -> None:
    """A Redis of the test's own."""
    _program("redis-server")


@pytest.fixture(scope="session")
def needs_compiler(needs_process: None) -> None:
    """The compiler `g++`, with which programs of the policy are built."""
    _program("g++")


@pytest.fixture(scope="session")
def needs_openssl(needs_process: None) -> None:
    """The command `openssl`, which makes certificates."""
    _program("openssl")


@pytest.fixture(scope="session")
def needs_curl(needs_process: None) -> None:
    """The command `curl`, with which pages show requests."""
    _program("curl")


@pytest.fixture(scope="session")
def needs_prometheus(needs_process: None) -> None:
    """Prometheus, and the command `promtool` that comes with it."""
    _program("prometheus")
    _program("promtool")


@pytest.fixture(scope="session")
def needs_browser(needs_process: None) -> None:
    """Chromium, and the driver that comes with it."""
    _program("chromium")
    _program("chromedriver")


@pytest.fixture(scope="session")
def needs_shellcheck(needs_process: None) -> None:
    """The command `shellcheck`."""
    _program("shellcheck")


@pytest.fixture(scope="session")
def needs_mount(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The right to mount file systems."""
    try:
        with Disk(tmp_path_factory.mktemp("mounted"), "1m"):
            pass
    except OSError as error:
        pytest.skip(f"nothing may be mounted here: {error}")


@pytest.fixture(scope="session")
def needs_helm(needs_process: None) -> None:
    """Helm, which renders charts."""
    if not helm():
        pytest.skip("helm is not installed")


@pytest.fixture(scope="session")
def needs_compose(needs_process: None) -> None:
    """The command `docker compose`, with or without an engine."""
    _program("docker")
    try:
        engine.ask("docker", "compose", "version")
    except StackError:
        pytest.skip("docker has no command `compose`")


@pytest.fixture(scope="session")
def needs_stack(needs_nginx: None, needs_redis: None) -> None:
    """The services as `make up` starts them without containers."""


@pytest.fixture(scope="session")
def needs_engine() -> None:
    """A container engine with Compose, and the images of a stack without models."""
    if lacks := compose.missing():
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def needs_model_images(needs_engine: None) -> None:
    """The images of the model servers."""
    if lacks := compose.missing_models():
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def needs_model() -> None:
    """The model servers' environment and the small models."""
    if not environment.is_ready(Models(Path(settings.load(ROOT)["MODELS_DIR"]))):
        pytest.skip("the model servers are not installed: make models, or set MODELS_DIR to where they are")
