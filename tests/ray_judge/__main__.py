"""`make ray`: what needs a Ray cluster, in an environment of its own, `.ray`.

That has Ray, and sees the packages of the model servers' environment and of `.venv`, so that neither changes nor is
installed twice. Each file of tests starts its clusters in a process of its own, as trainers do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

from services.stack import venv
from services.stack.console import exit_status, say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from tests.support.vllm import models

ENVIRONMENT = ROOT / ".ray"
HERE = Path(__file__).parent
FAKE = (HERE / "running_fake.py",)
REAL = (HERE / "running_vllm.py",)
ALSO = "import site; site.addsitedir({!r})\n"


def main() -> int:
    """Runs the tests; gives the exit status."""
    parser = argparse.ArgumentParser("make ray", description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="without vLLM, with fake engines")
    smoke = parser.parse_args().smoke
    return exit_status(partial(_run, smoke=smoke))


def _run(*, smoke: bool) -> None:
    python = _prepare([] if smoke else [_packages(models().venv)])
    for file in FAKE if smoke else (*FAKE, *REAL):
        say(f"==> {file.relative_to(ROOT)}")
        # Ray's processes import what the tests do, by names from the root of the tree.
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [python, "-m", "pytest", "--numprocesses", "0", "-p", "no:cacheprovider", str(file)]
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise StackError(f"{file.relative_to(ROOT)} has failed", "what failed stands above")


def _prepare(others: list[Path]) -> str:
    """The interpreter of the environment, which is made where it is not.

    Args:
        others: folders of packages, beside those of `.venv`; those come last.
    """
    constraint = next(line for line in venv.CONSTRAINTS.read_text().splitlines() if line.startswith("ray=="))
    stamp = ENVIRONMENT / f".installed-{constraint}"
    if not stamp.exists():
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        venv.create(ENVIRONMENT)
    also = [*others, Path(sysconfig.get_path("purelib"))]
    (_packages(ENVIRONMENT) / "others.pth").write_text("".join(ALSO.format(str(one)) for one in also))
    if not stamp.exists():
        with step(f"installing {constraint} into {ENVIRONMENT}"):
            venv.install(ENVIRONMENT, "--constraint", str(venv.CONSTRAINTS), constraint)
        stamp.touch()
    return str(ENVIRONMENT / "bin/python")


def _packages(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
