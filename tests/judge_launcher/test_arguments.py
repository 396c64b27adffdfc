"""A flag of `run_vllm_server.py` beats its variable, and that one the stack's setting."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from services.judge.run_vllm_server import parse
from services.stack.errors import StackError
from services.stack.settings import Settings, load

ROOT = Path(__file__).resolve().parents[2]


def settings(**values: str) -> Settings:
    """The shipped ones, and what a test changes."""
    return load(ROOT, values)


def test_defaults() -> None:
    """Without anything it is the stack's settings on every address: port 8000, one replica, the machine's model."""
    known, made = parse([], settings(JUDGE_VLLM_ARGS="--of-a-stack"), {})
    assert (known.model, known.host, known.port, known.replicas, known.yes) == ("", "0.0.0.0", 8000, 1, False)
    assert (made["JUDGE_DTYPE"], made["JUDGE_MAX_MODEL_LEN"], made["JUDGE_GPU_MEMORY_UTILIZATION"]) == ("", "", "0.9")
    assert (made["JUDGE_TENSOR_PARALLEL_SIZE"], made["JUDGE_VLLM_ARGS"]) == ("1", "")


@pytest.mark.parametrize(
    ("arguments", "environ", "expected"),
    [
        ([], {}, "of the stack"),
        ([], {"MODEL_ID": "of the variable"}, "of the variable"),
        (["--model", "of the flag"], {"MODEL_ID": "of the variable"}, "of the flag"),
        ([], {"MODEL_ID": ""}, "of the stack"),
    ],
)
def test_precedence(arguments: list[str], environ: dict[str, str], expected: str) -> None:
    """The flag first, then the variable, then the setting; an empty variable is none."""
    configured = settings()
    configured["JUDGE_MODEL"] = "of the stack"
    assert parse(arguments, configured, environ)[0].model == expected


def test_originals_variables() -> None:
    """The original's variables are all taken."""
    environ = {"PORT": "9000", "DTYPE": "bfloat16", "MAX_MODEL_LEN": "4096", "GPU_MEMORY_UTILIZATION": "0.5"}
    known, made = parse([], settings(), environ)
    assert known.port == 9000
    own = [made[f"JUDGE_{name}"] for name in ("DTYPE", "MAX_MODEL_LEN", "GPU_MEMORY_UTILIZATION")]
    assert own == ["bfloat16", "4096", "0.5"]


@pytest.mark.parametrize("spell", [lambda flag: flag, lambda flag: "--" + flag[2:].replace("-", "_")])
def test_spellings(spell: object) -> None:
    """vLLM's flags may be written with hyphens or underscores; those unknown here are passed on in their order."""
    assert callable(spell)
    flags = ["--max-num-seqs", "--max-num-batched-tokens", "--tensor-parallel-size"]
    arguments = [word for flag, value in zip(flags, "789", strict=True) for word in (spell(flag), value)]
    unknown = ["--reasoning-parser", "qwen3", "--max-logprobs=20", "--model-impl", "vllm"]
    known, made = parse([*arguments, *unknown], settings(), {})
    assert (known.model, made["JUDGE_TENSOR_PARALLEL_SIZE"]) == ("", "9")
    assert shlex.split(made["JUDGE_VLLM_ARGS"]) == ["--max-num-seqs", "7", "--max-num-batched-tokens", "8", *unknown]


@pytest.mark.parametrize("arguments", [["--replicas", "0"], ["--tensor-parallel-size", "two"], ["--port", "http"]])
def test_malformed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A malformed number is named with its flag."""
    with pytest.raises(SystemExit):
        parse(arguments, settings(), {})
    assert f"argument {arguments[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("PORT", "tcp"), ("GPU_MEMORY_UTILIZATION", "90"), ("DTYPE", "two words")])
def test_malformed_variable(name: str, value: str) -> None:
    """So is a malformed variable, by the table of settings."""
    with pytest.raises(StackError, match=f"environment: {name}: '{value}' is not .* — unset {name}"):
        parse([], settings(), {name: value})
