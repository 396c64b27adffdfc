"""One folder of Helm's outputs for all processes of a test run."""

from __future__ import annotations

import pytest

from tests.helm import rendering


@pytest.fixture(scope="session", autouse=True)
def helm_outputs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Let the processes of pytest-xdist, whose folders are in the run's folder, share what Helm rendered."""
    folder = tmp_path_factory.getbasetemp()
    rendering.OUTPUTS = folder if worker_id == "master" else folder.parent
