"""`make trainers`: each trainer's own package, in an environment of its own, against one reward server and one judge.

A row of `environments.json` is a trainer: what pip installs for it into `.trainers/NAME`, pinned, and whether CI runs
it too. `running_NAME.py` is what is checked; it sees the packages of `.venv` behind those of the trainer, and says by
the fixture `report` what it has checked, of which a line a trainer is printed at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.judge_load import slow_judge
from services.judge.model import Model
from services.stack import venv
from services.stack.console import exit_status, say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from tests.pythons import find
from tests.rules.conftest import running
from tests.support import vllm
from tests.support.servers import FaultServer

HERE = Path(__file__).parent
POOLING = ROOT / "tests/client/reward_model/fake_pooling.py"
ENVIRONMENTS = ROOT / ".trainers"
FAKE_JUDGE_SECONDS = 0.05
"""That the fake judge takes for a verdict."""
ALSO = "import site; site.addsitedir({!r})\n"


class Trainer(NamedTuple):
    """A row of `environments.json`.

    Args:
        name: of the row.
        about: a sentence.
        packages: that pip installs, pinned.
        versions: names of those whose versions are told.
        smoke: whether CI runs it.
        alone: packages that are installed without what they need.
        python: the Python that it needs, such as "3.13"; empty for that of `.venv`, whose packages it then sees.
    """

    name: str
    about: str
    packages: list[str]
    versions: list[str]
    smoke: bool
    alone: Sequence[str] = ()
    python: str = ""


def main() -> int:
    """Runs the tests; gives the exit status."""
    parser = argparse.ArgumentParser("make trainers", description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="those that CI runs, with a fake judge")
    parser.add_argument("--newest", action="store_true", help="the newest of each package, instead of the pinned one")
    parser.add_argument("names", nargs="*", help="of trainers; all, if none is given")
    arguments = parser.parse_args()
    return exit_status(partial(_run, arguments.names, smoke=arguments.smoke, newest=arguments.newest))


def _run(names: list[str], *, smoke: bool, newest: bool) -> None:
    rows = json.loads((HERE / "environments.json").read_text())
    if unknown := sorted({*names} - {*rows}):
        raise StackError(f"there is no trainer {unknown[0]}", f"name some of {', '.join(rows)}")
    trainers = [Trainer(name, **row) for name, row in rows.items() if name in (names or rows)]
    with tempfile.TemporaryDirectory() as folder, _services(Path(folder), smoke=smoke) as addresses:
        lines = {
            trainer.name: _try(trainer, addresses, newest=newest)
            for trainer in trainers
            if trainer.smoke or names or not smoke
        }
    say("")
    for name, line in lines.items():
        say(f"{name:16} {line}", whole=True)
    if failed := [name for name, line in lines.items() if line.startswith("FAILED")]:
        raise StackError(f"what was checked with {', '.join(failed)} did not hold", "what failed stands above")


@contextmanager
def _services(folder: Path, *, smoke: bool) -> Iterator[dict[str, str]]:
    """The variables that say where a reward server and a judge are, which both run."""
    with ExitStack() as stack:
        if smoke:
            url, _ = stack.enter_context(slow_judge(FAKE_JUDGE_SECONDS))
            model = FaultServer(script=POOLING)
            stack.callback(model.kill)
            model_url = model.url
        else:
            url = stack.enter_context(vllm.running(folder / "judge.log")).url
            model_url = stack.enter_context(_reward_model(folder)).url
        server = stack.enter_context(running(folder, LLM_JUDGE_SERVER_URL=url, CODE="on"))
        yield {"LLM_JUDGE_SERVER_URL": url, "REWARD_SERVER_URL": server.url, "REWARD_MODEL_SERVER_URL": model_url}


@contextmanager
def _reward_model(folder: Path) -> Iterator[vllm.VllmServer]:
    """A vLLM that serves a tiny reward model."""
    made = vllm.make_reward_models(folder / "reward_models")
    served = Model(str(made / "one-label"), "rm", is_local=True)
    with vllm.running(folder / "reward_model.log", "--runner", "pooling", model=served) as server:
        yield server


def _try(trainer: Trainer, addresses: Mapping[str, str], *, newest: bool) -> str:
    """What was checked, in a line; it begins with FAILED where something did not hold."""
    say(f"==> {trainer.name}: {trainer.about}")
    try:
        python = _prepare(trainer, newest=newest)
    except StackError as error:
        return f"FAILED to install: {error}"
    with tempfile.NamedTemporaryFile("r") as said:
        # A trainer's own processes import what the tests do, by names from the root of the tree.
        variables = {**os.environ, **addresses, "PYTHONPATH": str(ROOT), "TRAINERS_REPORT": said.name}
        # Without the CPU limit of fast tests: these train.
        plugins = ["-p", "no:cacheprovider", "-p", "no:tests.support.slow_tests"]
        options = ["--numprocesses", "0", *plugins, "-o", "filterwarnings=default"]
        command = [python, "-m", "pytest", *options, str(HERE / f"running_{trainer.name}.py")]
        status = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
        checked = "; ".join(said.read().splitlines())
    return f"{'FAILED, ' if status else ''}{_versions(python, trainer)}: {checked}"


def _prepare(trainer: Trainer, *, newest: bool) -> str:
    """The interpreter of a trainer's environment, which is made where it is not."""
    environment = ENVIRONMENTS / trainer.name
    own = find(trainer.python) if trainer.python else sys.executable
    if not own:
        raise StackError(f"it needs Python {trainer.python}", "put one on PATH or among pyenv's")
    if not trainer.packages and not trainer.alone:
        return sys.executable
    pinned, alone = ([_newest(one) if newest else one for one in some] for some in (trainer.packages, trainer.alone))
    digest = hashlib.sha256(json.dumps([own, sys.version, pinned, alone]).encode()).hexdigest()[:12]
    stamp = environment / f".installed-{'newest' if newest else digest}"
    if not stamp.exists() or newest:
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, own)
        with step(f"installing {', '.join(trainer.versions)} into {environment.relative_to(ROOT)}"):
            if pinned:
                venv.install(environment, *pinned)
            if alone:
                venv.install(environment, "--no-deps", *alone)
        stamp.touch()
    if not trainer.python:
        packages = next(environment.glob("lib/python*/site-packages"))
        (packages / "others.pth").write_text(ALSO.format(sysconfig.get_path("purelib")))
    return str(environment / "bin/python")


def _newest(requirement: str) -> str:
    """A requirement without its pin, but with its bounds; torch keeps it, for its newest would come with CUDA."""
    return requirement if requirement.startswith("torch==") else re.sub(r"==[^,]+,?", "", requirement)


def _versions(python: str, trainer: Trainer) -> str:
    told = f"(n + ' ' + version(n) for n in {trainer.versions!r})"
    asked = f"from importlib.metadata import version; print(*{told}, sep=', ')"
    said = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return said.stdout.strip() or trainer.name


if __name__ == "__main__":
    sys.exit(main())
