"""`make pythons`: on each Python that README names and this machine has, everything installs and the client works.

Each distribution is installed alone into an empty environment and tried. One more environment, as `make setup-dev`
would make it, runs the fast tests of the client and its commands. Those of the rest are run by `make check` on the
Python that `.venv` has.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from services.stack import venv
from services.stack.console import exit_status, say
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from tests.support.needs import MARKERS, NIGHTLY

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
TESTS = ("tests/client", "tests/cli", "tests/data", "tests/settings", "tests/test_open_files.py")
# Without the CPU limit of fast tests: the first imports in a new environment compile everything.
PYTEST = (
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:tests.support.slow_tests",
    "--numprocesses",
    "auto",
    "--dist",
    "worksteal",
)
ALONE = {
    (
        "verifier",
    ): "from rewardstack_verifier import verify; assert verify(r'\\boxed{\\sqrt{8}}', [r'2\\sqrt{2}']).right",
    ("verifier", "client"): "from rewardstack import compute_score, score",
    ("verifier", "client", "cli"): "from rewardstack_cli.main import main; assert main(['routes']) == 0",
    ("verifier", "client", "services/rules"): (
        "from rewardstack.score import Request; from rewardstack_rules.functions.catalog import load_registry;"
        "from rewardstack_rules.scoring.evaluator import Evaluator; from rewardstack_rules.settings import Settings;"
        "evaluator = Evaluator(Settings.from_env({}), load_registry([]));"
        "assert evaluator.score([Request('gsm8k', '#### 42', '42')], limit=9, tenant='')[0].value == 1;"
        "from rewardstack import compute_score;"
        "assert compute_score('math', r'\\boxed{\\sin x}', r'\\cos(\\pi/2 - x)') == 1"
    ),
}
"""What a distribution, the last of each row, does with what it needs of the others and without their extras."""
ASK = "import ensurepip, platform, venv; print(platform.python_version())"


def main() -> None:
    """Try every version, or with `--smoke` the oldest and the newest that the machine has, and say how each did.

    Raises:
        StackError: one of them does not install, or a test failed with it.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="the oldest and the newest alone")
    smoke = parser.parse_args().smoke
    pythons = {version: python for version in VERSIONS if version != OWN and (python := find(version))}
    tried = {*list(pythons)[:1], *list(pythons)[-1:]} if smoke else set(pythons)
    outcomes, bad = [], []
    for version in VERSIONS:
        try:
            outcomes.append(_outcome(version, pythons.get(version), version in tried))
        except (StackError, subprocess.CalledProcessError) as error:
            outcomes.append(str(error))
            bad.append(version)
    say()
    for version, outcome in zip(VERSIONS, outcomes, strict=True):
        say(f"{version:<6}{outcome}")
    if bad:
        raise StackError(f"no stack on Python {', '.join(bad)}", "see above what pip and the tests said")


def _outcome(version: str, python: str | None, tried: bool) -> str:
    if version == OWN:
        return "that of .venv: make check runs every fast test on it"
    if not python:
        return "not on this machine"
    if not tried:
        return "between the oldest and the newest, which are tried"
    say(f"==> Python {version}: {python}")
    for folders, code in ALONE.items():
        _alone(python, folders, code)
    with TemporaryDirectory(prefix="rewardstack-python-") as folder:
        start = time.monotonic()
        subprocess.run([python, "-m", "venv", folder], check=True, stdout=subprocess.DEVNULL)
        venv.install(Path(folder), "--constraint", str(venv.CONSTRAINTS), *venv.DEVELOPMENT)
        return f"installed in {time.monotonic() - start:.0f} s, {_tested(Path(folder) / 'bin/python')}"


def _alone(python: str, folders: tuple[str, ...], code: str) -> None:
    """Install distributions into an empty environment, and run code there; raises where either fails."""
    with TemporaryDirectory(prefix="rewardstack-alone-") as folder:
        subprocess.run([python, "-m", "venv", folder], check=True, stdout=subprocess.DEVNULL)
        venv.install(Path(folder), "--constraint", str(venv.CONSTRAINTS), *(f"./{one}" for one in folders))
        done = subprocess.run(
            [Path(folder) / "bin/python", "-c", code], cwd=folder, check=False, stdout=subprocess.DEVNULL
        )
        if done.returncode:
            raise StackError(f"{folders[-1]} does not work alone")


def _tested(python: Path) -> str:
    """pytest's last line; where a test failed, all that it said is shown first."""
    command = (str(python), "-m", "pytest", *PYTEST, "-m", f"not ({' or '.join((*MARKERS, NIGHTLY))})", *TESTS)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0:
        say(done.stdout)
        raise StackError(f"tests failed: {last}")
    return last


def find(version: str) -> str | None:
    """The path of this Python, on PATH or among pyenv's, which need not be on it."""
    found = [shutil.which(f"python{version}")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        found += sorted(map(str, Path(root, "versions").glob(f"{version}.*/bin/python")), reverse=True)
    return next((python for python in found if python and _works(python, version)), None)


def _works(python: str, version: str) -> bool:
    """Whether it is that version, and can make environments; a shim may stand for none."""
    done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"{version}.")


if __name__ == "__main__":
    sys.exit(exit_status(main))
