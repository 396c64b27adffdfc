"""What is written from the table is as the table says, and a setting that is added to it is everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from services.stack import version, writer
from services.stack.chart import CHART
from services.stack.rundir import ROOT
from services.stack.settings import read_dotenv
from services.stack.settings_table import VLLM
from tests.settings.conftest import Copy

TABLE = "services/stack/settings_table.py"
SERVER_TABLE = "services/rules/rewardstack_rules/settings_table.py"
CHARTS = ("files/settings.yaml", "values.schema.json")
ROW = '    Setting("VERIFY_PATIENCE", "7", Integer(1, 9), SCORING, "patience"),\n'
BEFORE = '    Setting("VERIFY_PROCESSES"'
SERVER = ("-m", "rewardstack_rules.run_reward_server")
WORKER = ("-m", "rewardstack_rules.jobs.worker")
UP = ("-m", "services.up", "up")
GIVEN = (
    "from services.up.native.programs import SETTINGS_BY_SERVICE as settings; "
    "print([name for name, own in settings.items() if '{}' in own])"
)


def test_up_to_date() -> None:
    """`make settings` would change nothing."""
    stale = [path.name for path, text in writer.render_files(ROOT).items() if writer.current_text(path) != text]
    assert stale == []


@pytest.fixture(scope="module")
def extended(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy with one more row in the table, and the files written from it; tests leave it as it is."""
    copy = Copy(tmp_path_factory.mktemp("extended") / "tree")
    table = copy.path / SERVER_TABLE
    table.write_text(table.read_text().replace(BEFORE, ROW + BEFORE))
    status, said = copy.python("-m", "services.stack", "settings")
    written = [".env", "compose.yaml", "docs/settings.md", *(f"{CHART}/{name}" for name in CHARTS)]
    assert (status, said) == (0, f"==> written: {', '.join(written)}\n")
    return copy


def test_one_row_is_enough(extended: Copy) -> None:
    """A row of the table is in `.env`, in the documentation, in the compose files, and its readers are given it."""
    assert "# patience\nVERIFY_PATIENCE=7\n" in extended.text(".env")
    assert "| `VERIFY_PATIENCE` | `7` | reward server, worker | patience |" in extended.text("docs/settings.md")
    assert "      VERIFY_PATIENCE: ${VERIFY_PATIENCE}\n" in extended.text("compose.yaml")
    assert json.loads(extended.text(f"{CHART}/{CHARTS[1]}"))["properties"]["settings"]["properties"]["VERIFY_PATIENCE"]
    assert extended.python("-c", GIVEN.format("VERIFY_PATIENCE")) == (0, "['rules', 'worker']\n")


def test_one_row_is_checked(extended: Copy) -> None:
    """And `make up` either way, the reward server and a worker refuse another value than it says, in the same words."""
    complaint = "VERIFY_PATIENCE: '10' is not a whole number from 1 to 9"
    for command, environ in ((UP, {"STACK": "native"}), (UP, {"STACK": "compose"}), (SERVER, {}), (WORKER, {})):
        status, said = extended.python(*command, VERIFY_PATIENCE="10", **environ)
        assert (status, complaint in said) == (1, True), said
    assert not (extended.path / ".run").exists()


def test_facts_stand_once(copy: Copy) -> None:
    """A version is changed in one place, and so is what a compose file has as a default; the user's own file stays."""
    users = copy.path / "compose.override.yaml"
    users.write_text("x-mine: ${GATEWAY_MEMORY:-7}\n")
    table = copy.path / TABLE
    text = table.read_text().replace(VLLM, "9.9.9")
    table.write_text(text.replace('"GATEWAY_MEMORY", "2g"', '"GATEWAY_MEMORY", "5g"'))
    assert copy.python("-m", "services.stack", "settings")[0] == 0
    images = read_dotenv(copy.path / ".env")
    assert [images[name].partition(":v")[2] for name in ("VLLM_IMAGE", "VLLM_CPU_IMAGE")] == ["9.9.9", "9.9.9-x86_64"]
    assert "${GATEWAY_MEMORY:-5g}" in copy.text("compose.yaml")
    assert users.read_text() == "x-mine: ${GATEWAY_MEMORY:-7}\n"


def test_version_stands_once(copy: Copy) -> None:
    """Another version of the client is written into every package, the chart, the image's labels and the pages."""
    old, new = version.read(ROOT), "7.8.9"
    source = copy.path / version.SOURCE
    source.write_text(source.read_text().replace(f'"{old}"', f'"{new}"'))
    assert copy.python("-m", "services.stack", "settings")[0] == 0
    assert read_dotenv(copy.path / ".env")["REWARDSTACK_IMAGE"] == f"rewardstack:{new}"
    assert copy.text("helm/rewardstack/Chart.yaml").count(new) == 2
    number = re.compile(rf"(?<![\d.=]){re.escape(old)}(?![\d.])|rewardstack.*=={re.escape(old)}")
    left = [path for path in copy.path.rglob("*") if number.search(_text(path))]
    assert [path for path in left if path.name != "CHANGELOG.md" and path.suffix != ".pyc"] == []


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
