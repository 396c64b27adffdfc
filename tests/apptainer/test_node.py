"""A node that others use: its ports, its loopback and its file systems."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import ports
from services.stack.errors import StackError
from services.stack.rundir import RunDir, Running, boot_id
from services.stack.settings import Settings
from services.up.apptainer import node


def running(**ports: int) -> Running:
    """A stack with these ports."""
    return Running(1, boot=boot_id(), gateway="", host="", ports=ports, services=["cache"], backend="apptainer")


def test_ports(settings: Settings) -> None:
    """A port that another process has is another one; one that is set stays, and so does that of what runs."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        settings["REWARD_PORT"] = settings["JUDGE_PORT"] = str(usual)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(node.SETTINGS, "REWARD_PORT", replace(node.SETTINGS["REWARD_PORT"], default=str(usual)))
            made = node.choose_ports(settings, None, {})
            assert made["REWARD_PORT"] != str(usual) and made["JUDGE_PORT"] == str(usual)
            assert node.choose_ports(settings, None, {"REWARD_PORT": str(usual)})["REWARD_PORT"] == str(usual)
            assert node.choose_ports(settings, running(REWARD_PORT=7123), {})["REWARD_PORT"] == "7123"


def test_any_free_ports(settings: Settings) -> None:
    """FREE_PORTS takes no usual port, though it is free."""
    settings["FREE_PORTS"] = "on"
    usual = [settings[name] for name in ports.GATEWAY.values()]
    made = node.choose_ports(settings, None, {})
    assert not {made[name] for name in ports.GATEWAY.values()} & {*usual}


def test_keys(settings: Settings, run: RunDir) -> None:
    """Every server has a key: the user's own, or one that stays the same as long as the run directory does.

    An external server is never sent a generated key.
    """
    settings["LLM_JUDGE_SERVER_API_KEY"] = "mine"
    node.keep_secret(run)
    first, second = (node.add_keys(settings, run) for _ in range(2))
    assert first == second and first["LLM_JUDGE_SERVER_API_KEY"] == "mine"
    made = {first[name] for name in ("REWARD_SERVER_API_KEYS", "EMBEDDING_SERVER_API_KEY")}
    assert len(made) == 2 and min(map(len, made)) >= 32
    node.keep_secret(run)
    assert node.add_keys(settings, run) == first
    settings["EMBEDDING_SERVER_URL"] = "http://node-7:8080"
    assert node.add_keys(settings, run)["EMBEDDING_SERVER_API_KEY"] == ""


def test_keys_from_files(settings: Settings, run: RunDir, tmp_path: Path) -> None:
    """KEYS_DIR gives the keys of the servers, a folder of replicas that of its servers; external ones keep theirs."""
    for name in ("job", "judges"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text(f"the key of {name}\n")
    settings |= {"KEYS_DIR": str(tmp_path / "job"), "JUDGE_REPLICAS_DIR": str(tmp_path / "judges")}
    settings |= {"EMBEDDING_SERVER_URL": "https://api.example.com", "EMBEDDING_SERVER_API_KEY": "mine"}
    found = node.add_keys(settings, run)
    assert (found["REWARD_SERVER_API_KEYS"], found["LLM_JUDGE_SERVER_API_KEY"]) == (
        "the key of job",
        "the key of judges",
    )
    assert found["EMBEDDING_SERVER_API_KEY"] == "mine"
    (tmp_path / "judges" / "key").unlink()
    with pytest.raises(StackError, match="^KEYS_DIR: .*judges/key"):
        node.add_keys(settings, run)


MOUNTED = """\
1 0 0:1 / / rw - ext4 /dev/root rw
2 1 0:2 / /home rw shared:1 - nfs4 server:/home rw
3 1 0:3 / /scratch rw - lustre mgs:/scratch rw
4 3 0:4 / /scratch/local rw - xfs /dev/nvme rw
5 1 0:5 / /shared\\040data rw - fuse.beegfs beegfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/tmp/x", ""), ("/home/me/run", "nfs4"), ("/scratch/run", "lustre"), ("/scratch/local/run", ""),
     ("/homework", ""), ("/shared data/run", "beegfs")],
)  # fmt: skip
def test_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str) -> None:
    """A run directory on a file system of several machines is refused, and the error says which it is."""
    (tmp_path / "mountinfo").write_text(MOUNTED)
    monkeypatch.setattr(node, "MOUNTS", tmp_path / "mountinfo")
    if not kind:
        node.require_local(Path(path))
        return
    with pytest.raises(StackError, match=rf"RUN_DIR: {path} .*\({kind}\)"):
        node.require_local(Path(path))
