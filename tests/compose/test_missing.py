"""Tests of containers are skipped where the engine lacks images and cannot pull them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import compose

SERVICES = {
    "rules": {"image": "rewardstack:1", "build": {"context": "."}},
    "base": {"image": "python:3"},
    "cache": {"image": "redis:8"},
    "queue": {"image": "redis:8"},
    "judge": {"image": "vllm:1"},
}
DOCKER = """#!/bin/sh
echo "$*" >> {folder}/calls
case "$*" in
    info*) echo '{{}}' ;;
    "compose version --short") echo 2.30.0 ;;
    *config*) echo '{config}' ;;
    "image inspect"*) case " {images} " in *" $4 "*) ;; *) exit 1 ;; esac ;;
    pull*) {pull} ;;
esac
"""


def fake_docker(folder: Path, monkeypatch: pytest.MonkeyPatch, images: str, pull: str) -> None:
    """Put a `docker` first on PATH whose engine has some images, and runs `pull` to pull one."""
    file = folder / "docker"
    config = json.dumps({"services": SERVICES})
    file.write_text(DOCKER.format(folder=folder, config=config, images=images, pull=pull))
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize(
    ("images", "pull", "reason", "model_reason"),
    [
        ("python:3 redis:8 vllm:1", "exit 1", "", ""),
        ("python:3 redis:8", "exit 1", "", "container images are missing: vllm:1"),
        ("vllm:1", "true", "", ""),
        ("vllm:1", "exit 1", *["container images are missing and cannot be pulled: python:3 redis:8"] * 2),
        ("redis:8", "exec sleep 3600", *["container images are missing and cannot be pulled: python:3"] * 2),
    ],
    ids=["all", "no-models", "can-pull", "no-registry", "no-answer"],
)
def test_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: str, pull: str, reason: str, model_reason: str
) -> None:
    """Missing images are named if none can be pulled in time; no test pulls those of the model servers."""
    fake_docker(tmp_path, monkeypatch, images, pull)
    if "sleep" in pull:
        monkeypatch.setattr(compose, "PULL_SECONDS", 0.5)  # expires: the engine pulls for an hour
    for function in (compose.missing, compose.missing_models):
        monkeypatch.setattr(compose, function.__name__, function.__wrapped__)
    assert compose.missing() == reason
    assert compose.missing_models() == model_reason
    assert "pull --quiet vllm:1" not in (tmp_path / "calls").read_text()
