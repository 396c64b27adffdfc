"""The server's settings: TEI's flags, each of which may also be a variable of the environment (`--max-batch-tokens`,
`--max_batch_tokens`, MAX_BATCH_TOKENS).
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

POOLINGS = ("cls", "mean", "last_token")
DTYPES = ("float16", "float32", "bfloat16")
MAX_TOKENIZATION_WORKERS = 64


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def parse_word(text: str) -> str:
        word = text.replace("-", "_")
        if word not in words:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(words)}")
        return word

    return parse_word


def _setting(default: Any, kind: Callable[[str], Any], text: str) -> Any:
    """A field that is a flag: what it is without one, how its text is read, its line of help."""
    return dataclasses.field(default=default, metadata={"type": kind, "help": text})


@dataclass(frozen=True)
class Settings:
    """What the command line says, and the environment where that says nothing."""

    model_id: str | None = _setting(None, str, "name on the model hub, or folder; one that suits the machine")
    revision: str | None = _setting(None, str, "of the model on the hub; its newest")
    dtype: str | None = _setting(None, _one_of(DTYPES), f"{', '.join(DTYPES)}; float16 on a GPU, float32 on a CPU")
    pooling: str | None = _setting(None, _one_of(POOLINGS), f"{', '.join(POOLINGS)}; as the model is configured")
    served_model_name: str | None = _setting(None, str, "what /v1/embeddings calls the model; its name")
    default_prompt: str | None = _setting(None, str, "put before every text whose request names no prompt")
    default_prompt_name: str | None = _setting(None, str, "name of the model's own prompt to put there")
    max_concurrent_requests: int = _setting(512, _count, "inputs under way at the same time; more get 429")
    max_batch_tokens: int = _setting(16384, _count, "tokens of one forward pass, padding counted")
    max_batch_requests: int | None = _setting(None, _count, "inputs of one forward pass")
    max_client_batch_size: int = _setting(32, _count, "inputs of one request")
    auto_truncate: bool = _setting(True, _flag, "cut too long inputs where the request does not say")
    tokenization_workers: int = _setting(
        min(max((os.cpu_count() or 1) - 1, 1), MAX_TOKENIZATION_WORKERS), _count, "threads of the tokenizer"
    )
    payload_limit: int = _setting(2_000_000, _count, "bytes of a body")
    hostname: str = _setting("0.0.0.0", str, "address to listen on")
    port: int = _setting(8080, _count, "port to listen on")
    api_key: str | None = _setting(
        None, str, "bearer token that clients must send; better as API_KEY, which no process list shows"
    )


MAY_STAND_ALONE: Mapping[str, Any] = {"nargs": "?", "const": True}


def parse(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a command line; exits with a message, as argparse does, where one cannot be used."""
    parser = argparse.ArgumentParser(
        prog="run_tei_python.py",
        description="Serves text embeddings as Text Embeddings Inference does.",
        epilog="Each flag may also be a variable of the environment: MODEL_ID, PORT, MAX_BATCH_TOKENS ...",
        allow_abbrev=False,
    )
    for field in dataclasses.fields(Settings):
        name = field.name
        spellings = dict.fromkeys([*(["-p"] if name == "port" else []), f"--{name.replace('_', '-')}", f"--{name}"])
        otherwise = "" if field.default is None else f", else {field.default}"
        parser.add_argument(
            *spellings,
            dest=name,
            type=field.metadata["type"],
            default=_from_environment(name, environ) or field.default,
            help=f"{field.metadata['help']} ({name.upper()}{otherwise})",
            **(MAY_STAND_ALONE if name == "auto_truncate" else {}),
        )
    options = parser.parse_args(arguments)
    if options.default_prompt and options.default_prompt_name:
        parser.error("--default-prompt cannot be used with --default-prompt-name")
    return Settings(**vars(options))


def _from_environment(name: str, environ: Mapping[str, str]) -> str:
    """A setting's variable; empty where it does not count."""
    value = environ.get(name.upper(), "")
    return "" if name == "hostname" and not _is_address(value) else value


def _is_address(text: str) -> bool:
    """Shells set HOSTNAME to the machine's name, which is no address to listen on."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
