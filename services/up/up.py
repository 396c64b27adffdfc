"""Run `make up`, `make plan` and `make images` for all deployments.

The steps of `make up` are:

1. Run the preflight checks, then install the Python packages (the targets `preflight` and `setup` of the Makefile).
2. Read and check the settings. Choose the deployment: the setting STACK, else the running one, else containers if
   an engine answers, else local processes. Make its plan, which `make plan` prints. An optional model server is left
   out if an external one is configured, if this machine cannot run it, or if memory is short. The plan says why.
3. Apply the plan: install programs, or fetch and build images; write secrets and configuration; start or restart what
   has changed; wait until every service is healthy. An optional model server that fails is left out
   (`native/up.py`, `compose/up.py`, `apptainer/up.py`).
4. Score the bundled samples with `rewardstack score`.
5. Print the variables to export (for Apptainer: the command that sets them), and where status page and logs are.

An error or Ctrl-C ends `make up` with a message. Services that have started usually keep running: remove the cause and
repeat `make up`, or run `make down`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets

from services.stack import ports
from services.stack.console import say, step
from services.stack.rundir import RunDir
from services.stack.settings import SECRETS, SETTINGS, Settings
from services.up import deployment, summary
from services.up.apptainer.up import plan as plan_apptainer
from services.up.compose.up import make_image
from services.up.compose.up import plan as plan_compose
from services.up.native.up import plan as plan_native
from services.up.plan import Plan
from services.up.preflight import read_settings

PLAN = {"compose": plan_compose, "native": plan_native, "apptainer": plan_apptainer}


def up() -> None:
    """Start the stack, wait until it is healthy, and score the bundled samples.

    Raises:
        StackError: a setting is invalid, a port is taken, a service does not become healthy, or a sample is not `ok`.
    """
    settings, run = read_settings()
    run.make()
    with run.lock():
        plan = _plan(settings, run)
        plan.announce()
        if changed := changed_settings(settings, run):
            say("settings changed since the last start:\n  " + "\n  ".join(changed))
        ports.require_free(plan.ports, plan.held)
        started = plan.apply()
        _save(settings, run)
        with step("scoring the bundled samples", "bundled samples scored"):
            summary.score(started, run)
        started.summarize()


def show_plan() -> None:
    """Print what `make up` would do, and why; change nothing.

    Raises:
        StackError: a setting is invalid, or `make up` would fail.
    """
    settings, run = read_settings()
    plan = _plan(settings, run)
    plan.show()
    ports.require_free(plan.ports, plan.held)


def build_image(registry: str) -> None:
    """Build the image of reward server and workers.

    Args:
        registry: registry to push the image to; empty for none.

    Raises:
        StackError: no engine answers, the build fails, or the registry rejects the image.
    """
    settings, run = read_settings(quiet=True)
    run.make()
    make_image(settings, run, registry)


def _plan(settings: Settings, run: RunDir) -> Plan:
    name, reason = deployment.choose(settings, run)
    return PLAN[name](settings, run, reason)


def changed_settings(settings: Settings, run: RunDir) -> list[str]:
    """Return a line for each setting that differs from the last start, without the values of secrets.

    If the settings of the last start are unknown, return no lines.

    Args:
        settings: settings of this start.
        run: run directory of the stack.
    """
    try:
        last = json.loads(run.settings.read_text(encoding="utf-8"))
        before, now = last["values"], _with_digests(settings, last["salt"])
    except (OSError, ValueError, KeyError):
        return []
    changed = [name for name in SETTINGS if name in now and before.get(name, SETTINGS[name].default) != now[name]]
    return [
        f"{name}: changed"
        if name in SECRETS
        else f"{name}: {before.get(name, SETTINGS[name].default) or 'empty'} → {now[name] or 'empty'}"
        for name in changed
    ]


def _save(settings: Settings, run: RunDir) -> None:
    salt = secrets.token_hex(16)
    run.settings.write_text(json.dumps({"salt": salt, "values": _with_digests(settings, salt)}), encoding="utf-8")


def _with_digests(settings: Settings, salt: str) -> dict[str, str]:
    """Return the values of the settings, with a keyed digest in place of each secret."""
    return {
        name: hmac.new(salt.encode(), value.encode(), hashlib.sha256).hexdigest() if name in SECRETS else value
        for name, value in settings.items()
    }
