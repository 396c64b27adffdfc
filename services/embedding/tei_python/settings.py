"""The server's settings: TEI's flags, each of which may also be a variable of the environment (`--max-batch-tokens`,
`--max_batch_tokens`, MAX_BATCH_TOKENS).
"""

from __future__ import annotations

import argparse
import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

POOLINGS = ("cls", "mean", "last_token")
DTYPES = ("float16", "float32", "bfloat16")
MAX_TOKENIZATION_WORKERS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says, and the environment where that says nothing.

    Args:
        model_id: a name on the model hub, or a folder; None for a model that suits the machine.
        revision: of the model on the hub; None for its newest.
        dtype: of weights and activations; None for float16 on a GPU and float32 on a CPU.
        pooling: one of `POOLINGS`; None for what the model's own configuration says.
        served_model_name: what `/v1/embeddings` calls the model; None for its name.
        default_prompt: put before every text whose request names no prompt; None for none.
        default_prompt_name: key of the model's own prompts, instead of `default_prompt`.
        max_concurrent_requests: inputs under way at the same time; more are refused with 429.
        max_batch_tokens: tokens of one forward pass, padding counted.
        max_batch_requests: inputs of one forward pass; None for no bound.
        max_client_batch_size: inputs of one request.
        auto_truncate: whether too long inputs are cut where the request does not say.
        tokenization_workers: threads of the tokenizer.
        payload_limit: bytes of a body.
        hostname: address to listen on.
        port: port to listen on.
        api_key: what clients must send as a bearer token; None for an open server.
    """

    model_id: str | None = None
    revision: str | None = None
    dtype: str | None = None
    pooling: str | None = None
    served_model_name: str | None = None
    default_prompt: str | None = None
    default_prompt_name: str | None = None
    max_concurrent_requests: int = 512
    max_batch_tokens: int = 16384
    max_batch_requests: int | None = None
    max_client_batch_size: int = 32
    auto_truncate: bool = True
    tokenization_workers: int = 1
    payload_limit: int = 2_000_000
    hostname: str = "0.0.0.0"
    port: int = 8080
    api_key: str | None = None


def parse(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a command line; exits with a message, as argparse does, where one cannot be used."""
    parser = _parser(environ)
    options = parser.parse_args(arguments)
    if options.default_prompt and options.default_prompt_name:
        parser.error("--default-prompt cannot be used with --default-prompt-name")
    return Settings(**vars(options))


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run_tei_python.py",
        description="Serves text embeddings as Text Embeddings Inference does.",
        epilog="Each flag may also be a variable of the environment: MODEL_ID, PORT, MAX_BATCH_TOKENS ...",
        allow_abbrev=False,
    )
    flags = _Flags(parser, environ)
    flags.add("model-id", str, "name on the model hub, or folder; one that suits the machine")
    flags.add("revision", str, "of the model on the hub")
    flags.add("dtype", _one_of(DTYPES), f"{', '.join(DTYPES)}; float16 on a GPU, float32 on a CPU")
    flags.add("pooling", _one_of(POOLINGS), f"{', '.join(POOLINGS)}; as the model is configured")
    flags.add("served-model-name", str, "what /v1/embeddings calls the model")
    flags.add("default-prompt", str, "put before every text")
    flags.add("default-prompt-name", str, "name of the model's own prompt to put before every text")
    flags.add("max-concurrent-requests", _count, "inputs under way at the same time; more get 429", 512)
    flags.add("max-batch-tokens", _count, "tokens of one forward pass", 16384)
    flags.add("max-batch-requests", _count, "inputs of one forward pass")
    flags.add("max-client-batch-size", _count, "inputs of one request", 32)
    flags.add("auto-truncate", _flag, "cut too long inputs where the request does not say", True, nargs="?", const=True)
    workers = min(max((os.cpu_count() or 1) - 1, 1), MAX_TOKENIZATION_WORKERS)
    flags.add("tokenization-workers", _count, "threads of the tokenizer", workers)
    flags.add("payload-limit", _count, "bytes of a body", 2_000_000)
    flags.add("hostname", str, "address to listen on", "0.0.0.0", usable=_is_address)
    flags.add("port", _count, "port to listen on", 8080, short="-p")
    flags.add("api-key", str, "bearer token that clients must send; better as API_KEY, which no process list shows")
    return parser


class _Flags:
    """Adds flags with both spellings and a variable each.

    Args:
        parser: to which they are added.
        environ: the variables.
    """

    def __init__(self, parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
        self._parser = parser
        self._environ = environ

    def add(
        self,
        name: str,
        kind: Callable[[str], Any],
        text: str,
        default: Any = None,
        *,
        short: str = "",
        usable: Callable[[str], bool] = bool,
        **more: Any,
    ) -> None:
        """Adds `--name`.

        Args:
            name: with hyphens.
            kind: of its value, as argparse's `type`.
            text: of the help.
            default: where neither flag nor variable is there.
            short: a further spelling.
            usable: says whether a variable's value counts.
            more: of argparse's own.
        """
        key = name.replace("-", "_")
        variable = self._environ.get(key.upper(), "")
        shown = f"{text} ({key.upper()}{f', else {default}' if default is not None else ''})"
        spellings = [*([short] if short else []), f"--{name}", *([f"--{key}"] if key != name else [])]
        given = variable if variable and usable(variable) else default
        self._parser.add_argument(*spellings, dest=key, type=kind, default=given, help=shown, **more)


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


def _is_address(text: str) -> bool:
    """Shells set HOSTNAME to the machine's name, which is no address to listen on."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
