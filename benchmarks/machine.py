"""Describe the machine and the commit that a benchmark ran on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from tests.support.servers import ROOT


def machine() -> dict[str, str]:
    """Return the machine's hardware, software versions and load as texts for the report."""
    names = re.findall(r"^model name\s*: (.+)$", _content("/proc/cpuinfo"), re.MULTILINE)
    kilobytes = re.search(r"^MemTotal:\s*(\d+)", _content("/proc/meminfo"))
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{int(kilobytes[1]) / 2**20:.1f} GiB" if kilobytes else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Redis": _redis(),
        "load before": f"{os.getloadavg()[0]:.1f}, over a minute",
    }


def commit() -> str:
    """Return the checked-out commit, with " and changes" if tracked files differ from it."""
    name = _output("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return (f"{name} and changes" if changed else name) or "unknown"


def _redis() -> str:
    found = re.search(r"v=(\S+)", _output("redis-server", "--version"))
    return found[1] if found else "none on the path"


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _content(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.exists() else ""
