"""Mark each test with what it needs, hide programs from tests that need none, and fail skipped tests in CI.

The fixtures of `tests.support` that all tests can use are imported here.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import nullcontext
from multiprocessing.util import Finalize
from typing import TypeVar

import pytest

from rewardstack.core.descriptors import raise_open_file_limit
from services.stack.rundir import ROOT
from services.stack.settings import LOCAL
from services.stack.settings_table import TABLE
from tests.support.needs import MARKERS, NIGHTLY, is_fast, no_programs
from tests.support.needs import needs_browser as needs_browser
from tests.support.needs import needs_compiler as needs_compiler
from tests.support.needs import needs_compose as needs_compose
from tests.support.needs import needs_curl as needs_curl
from tests.support.needs import needs_engine as needs_engine
from tests.support.needs import needs_helm as needs_helm
from tests.support.needs import needs_model as needs_model
from tests.support.needs import needs_model_images as needs_model_images
from tests.support.needs import needs_mount as needs_mount
from tests.support.needs import needs_nginx as needs_nginx
from tests.support.needs import needs_openssl as needs_openssl
from tests.support.needs import needs_process as needs_process
from tests.support.needs import needs_prometheus as needs_prometheus
from tests.support.needs import needs_redis as needs_redis
from tests.support.needs import needs_shellcheck as needs_shellcheck
from tests.support.needs import needs_stack as needs_stack
from tests.support.table import Table
from tests.support.table import table as table
from tests.support.vllm import vllm as vllm

pytest_plugins = ["tests.support.slow_tests", "tests.support.skips"]

ALONE = ("engine", "model")
SCRIPTS = {"model": ("test_embedding_remote.py", "test_server_connectivity.py")}
"""Files whose tests need a model, but use no fixtures, because they can also be run without pytest."""
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


OF_THE_MACHINE = {"BUILD_NETWORK", "INSTALL", "MODELS_DIR", "UP_TIMEOUT"}
"""Settings that describe the machine, not a stack: the only ones that tests read from the environment."""
FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)  # pytest's own reads basetemp
def pytest_configure(config: pytest.Config) -> None:
    """Raise the limit of open files, as the commands do; keep a developer's settings, stack and files apart from tests.

    All temporary files of a run are in one folder, which is removed if the run succeeds.
    """
    raise_open_file_limit()
    if (ROOT / LOCAL).exists():
        raise pytest.UsageError(f"tests need the shipped settings: move {LOCAL} away")
    for name in {*TABLE} - OF_THE_MACHINE:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        config.stash[FOLDER] = tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="tests-")
        os.chmod(os.environ["TMPDIR"], 0o711)  # compilers of programs run as another user
        config.option.basetemp = config.option.basetemp or f"{os.environ['TMPDIR']}/t"  # Unix sockets need short paths
    gc.disable()  # collected modules and tests stay: looking through them again and again takes seconds


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the temporary files of a successful run."""
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        folder = session.config.stash.get(FOLDER, "")
        # multiprocessing removes its own folder in it first, with the priority -100.
        Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests, and group those that one process of pytest-xdist must run one after another.

    All tests that need containers are one group, and so are all that need a model, because each takes most of a
    machine. Otherwise each file is a group, because its tests share servers. The most expensive groups run first.
    """
    ranks: dict[str, int] = {}
    groups: dict[pytest.Item, str] = {}
    for item in items:
        needs = [marker for marker in MARKERS if _needs(item, marker)]
        for marker in needs:
            item.add_marker(marker)
        if "model" in needs:
            item.add_marker(NIGHTLY)
        groups[item] = needs[0] if needs and needs[0] in ALONE else item.nodeid.partition("::")[0]
        rank = MARKERS.index(needs[0]) if needs else len(MARKERS)
        ranks[groups[item]] = min(rank, ranks.get(groups[item], rank))
        item.add_marker(pytest.mark.xdist_group(groups[item]))
    # Files late in the alphabet take longest (jobs, page, rules), so they start first.
    items.sort(key=lambda item: groups[item], reverse=True)
    items.sort(key=lambda item: ranks[groups[item]])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was collected out of garbage collections.

    Stop a run in which pytest-xdist ignores the groups: several expensive tests at a time would use all memory.
    """
    gc.freeze()
    gc.enable()
    if getattr(session.config.option, "loadgroup", False) and any("@" not in item.nodeid for item in session.items):
        raise pytest.UsageError(
            "this pytest-xdist does not group tests with this pytest; constraints.txt has a pair that do"
        )


def _needs(item: pytest.Item, marker: str) -> bool:
    return f"needs_{marker}" in getattr(item, "fixturenames", ()) or item.path.name in SCRIPTS.get(marker, ())


@pytest.fixture(autouse=True)
def no_earlier_warnings() -> Generator[None]:
    """Reset the rate limit of warnings after each test, so that it suppresses no warning of the next test."""
    yield
    if missing := sys.modules.get("rewardstack.pipeline.missing"):
        missing.missing_warnings.log_repeats(math.inf)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide all programs from fast tests, so that a test that runs a program must use a `needs_` fixture."""
    with no_programs() if is_fast(item) else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Report the failures of a table of cases."""
    result = yield
    found = getattr(item, "funcargs", {}).get("table")
    if isinstance(found, Table):
        found.report()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a skipped test in CI, except those with a marker that `CI_WITHOUT` names."""
    report = yield
    without = os.environ.get("CI_WITHOUT", "").split()
    return report if any(map(item.get_closest_marker, without)) else _strict(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a skipped module in CI."""
    return _strict((yield))


def _strict(report: Report) -> Report:
    """Turn a skip into a failure with the same reason if CI=true."""
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report
