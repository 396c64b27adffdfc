"""Fixtures for what a test needs on the machine: they skip the test if it is missing, and mark it.

A test or fixture that starts processes must use one of these fixtures. Tests that use none and are not marked `nightly`
are fast: `make check` runs them.
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

MARKERS = ("engine", "model", "compose", "stack", "process")
"""Markers, most expensive first; a test with the fixture `needs_engine` gets the marker `engine`, and so on."""
NIGHTLY = "nightly"
"""The marker of tests that take too long for `make test`; all tests that need a model get it, too."""


def is_fast(item: pytest.Item) -> bool:
    """Return whether `make check` runs a test."""
    return not any(map(item.get_closest_marker, (*MARKERS, NIGHTLY)))


@contextmanager
def no_programs() -> Iterator[None]:
    """Hide all programs: PATH has none, and the system folders where Debian installs nginx are not searched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nonexistent")
        patch.setattr(packages, "SYSTEM_DIRECTORIES", ())
        yield


@pytest.fixture(scope="session")
def needs_process() -> None:
    """Require processes that run for one test or one module."""


def _program(name: str) -> None:
    if name not in packages.find() and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def needs_nginx(needs_process: None) -> None:
    """Require an nginx that the test starts."""
    _program("nginx")


@pytest.fixture(scope="session")
def needs_redis(needs_process: None) -> None:
    """Require a Redis that the test starts."""
    _program("redis-server")


@pytest.fixture(scope="session")
def needs_compiler(needs_process: None) -> None:
    """Require the compiler `g++`, which compiles the policy's programs."""
    _program("g++")


@pytest.fixture(scope="session")
def needs_openssl(needs_process: None) -> None:
    """Require the command `openssl`, which creates certificates."""
    _program("openssl")


@pytest.fixture(scope="session")
def needs_curl(needs_process: None) -> None:
    """Require the command `curl`, which examples in the documentation use."""
    _program("curl")


@pytest.fixture(scope="session")
def needs_prometheus(needs_process: None) -> None:
    """Require Prometheus and its command `promtool`."""
    _program("prometheus")
    _program("promtool")


@pytest.fixture(scope="session")
def needs_browser(needs_process: None) -> None:
    """Require Chromium and its driver."""
    _program("chromium")
    _program("chromedriver")


@pytest.fixture(scope="session")
def needs_shellcheck(needs_process: None) -> None:
    """Require the command `shellcheck`."""
    _program("shellcheck")


@pytest.fixture(scope="session")
def needs_mount(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Require permission to mount file systems."""
    try:
        with Disk(tmp_path_factory.mktemp("mounted"), "1m"):
            pass
    except OSError as error:
        pytest.skip(f"nothing may be mounted here: {error}")


@pytest.fixture(scope="session")
def needs_helm(needs_process: None) -> None:
    """Require Helm, which renders charts."""
    if not helm():
        pytest.skip("helm is not installed")


@pytest.fixture(scope="session")
def needs_compose(needs_process: None) -> None:
    """Require the command `docker compose`; no engine has to run."""
    _program("docker")
    try:
        engine.ask("docker", "compose", "version")
    except StackError:
        pytest.skip("docker has no command `compose`")


@pytest.fixture(scope="session")
def needs_stack(needs_nginx: None, needs_redis: None) -> None:
    """Require what `make up` needs to start services without containers."""


@pytest.fixture(scope="session")
def needs_engine() -> None:
    """Require a container engine with Compose, and the images of a stack without models."""
    if lacks := compose.missing():
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def needs_model_images(needs_engine: None) -> None:
    """Require the images of the model servers."""
    if lacks := compose.missing_models():
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def needs_model() -> None:
    """Require the model servers' virtual environment and the small demo models."""
    if not environment.is_ready(Models(Path(settings.load(ROOT)["MODELS_DIR"]))):
        pytest.skip("the model servers are not installed: make models, or set MODELS_DIR to where they are")
