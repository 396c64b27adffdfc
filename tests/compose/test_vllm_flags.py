"""The judge in a container has the flags of the native one."""

from __future__ import annotations

import json
import re

import pytest

from services.judge.engine import Options, Vllm, command
from services.judge.model import Model
from services.stack.rundir import ROOT
from tests.compose.config import services

LINE = re.compile(r"^([a-z-]+): (.*)$", re.MULTILINE)
NATIVE_ALONE = {"--uds", "--served-model-name"}
"""Where it listens, and the name of a model that is served from a folder."""

pytestmark = pytest.mark.usefixtures("needs_compose")


def pairs(flags: list[str]) -> dict[str, str]:
    """Value by flag; empty for a flag without one."""
    found: dict[str, str] = {}
    for flag, following in zip(flags, [*flags[1:], "--"], strict=True):
        if flag.startswith("--"):
            found[flag] = "" if following.startswith("--") else following
    return found


def in_file() -> dict[str, str]:
    """The flags of vllm.yaml as they would stand on a command line."""
    lines = LINE.findall((ROOT / "services/judge/vllm.yaml").read_text())
    return {f"--{name}": "" if value == "true" else value for name, value in lines}


@pytest.mark.parametrize(("version", "files"), [("0.33.0+cpu", ()), ("0.33.0", ("compose.yaml", "compose.gpu.yaml"))])
def test_same_flags(version: str, files: tuple[str, ...]) -> None:
    """All that the native judge is started with, the one in a container is too."""
    options = Options(gpu_memory_utilization="0.9")
    native = command(Vllm("python", version, True), Model("m", "m", False), ["--uds", "s"], options)
    wanted = {name: value for name, value in pairs(native).items() if name not in NATIVE_ALONE}
    given = in_file() | pairs(services(*files)["judge"]["command"])
    thinking = "--default-chat-template-kwargs"
    assert json.loads(wanted.pop(thinking)) == {"enable_thinking": False}
    assert given.pop(thinking) == "{enable_thinking: false}"
    assert wanted.items() <= given.items()
