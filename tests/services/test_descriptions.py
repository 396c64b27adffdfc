"""A value that changes in the table of services changes in every deployment."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.helm.rendering import render
from tests.settings.conftest import Copy
from tests.settings.conftest import copy as copy

TABLE = "services/stack/services_table.py"
OF_GATEWAY = 'stop_signal="QUIT",'
MARGIN, DRAIN_TIMEOUT, PRE_STOP = 17, 90, 35
LOCAL = """
import json
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up.apptainer.container_exec import ContainerExec
from services.up.native.stack import Runtime, describe
(ROOT / "apptainer/images").mkdir(exist_ok=True)
for name in ("gateway", "redis", "rules"):
    (ROOT / f"apptainer/images/{name}.sif").touch()
programs, settings = {"nginx": "nginx", "redis-server": "redis-server"}, load(ROOT)
run = RunDir(settings["RUN_DIR"])
runtimes = {"native": Runtime(programs), "apptainer": Runtime(programs, wrap=ContainerExec(settings, run, "apptainer"))}
print(json.dumps({name: [program.stop_grace for program in describe(settings, run, runtime, [], None).programs
    if program.name == "gateway"] for name, runtime in runtimes.items()}))
"""


@pytest.mark.process
def test_stop_grace(copy: Copy, needs_helm: None) -> None:
    """The gateway's margin, changed in the table alone, is in local processes, images, Compose and the chart."""
    table = copy.path / TABLE
    text = table.read_text()
    assert text.count(OF_GATEWAY) == 1
    table.write_text(text.replace(OF_GATEWAY, f"{OF_GATEWAY} stop_margin={MARGIN},"))
    assert copy.python("-m", "services.stack", "settings")[0] == 0

    status, printed = copy.python("-c", LOCAL)
    assert status == 0, printed
    grace = DRAIN_TIMEOUT + MARGIN
    assert {"native": [grace], "apptainer": [grace]} == json.loads(printed.splitlines()[-1])

    compose = yaml.safe_load(copy.text("compose.yaml"))["services"]["gateway"]
    assert f"${{DRAIN_TIMEOUT}}s{MARGIN}000ms" == compose["stop_grace_period"]

    chart = copy.path / "helm/rewardstack"
    rendered = render(chart / "ci/cpu-small-values.yaml", chart=chart)
    gateway = rendered.one("Deployment", "gateway")["spec"]["template"]["spec"]
    assert PRE_STOP + grace == gateway["terminationGracePeriodSeconds"]
