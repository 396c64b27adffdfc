"""The model: sentence-transformers' modules, run on token ids."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import try_to_load_from_cache
from sentence_transformers import SentenceTransformer

from services.embedding.tei_python.errors import StartError
from services.embedding.tei_python.model_source import Source
from services.embedding.tei_python.replies import Vectors
from services.embedding.tei_python.settings import Settings
from services.embedding.tei_python.tokenization import Encoding

POOLING_MODES = {"cls": "cls", "mean": "mean", "last_token": "lasttoken"}
"""TEI's names to sentence-transformers'."""
MEASURED_TOKENS = (8, 512)
"""Tokens of the two passes from which the cost of a pass and of a token are told."""
MEASUREMENTS = 5
LEAST_OVERHEAD = 32
"""Tokens; less than that was only ever measured on a machine that was busy with other work."""

log = logging.getLogger(__name__)


class Model:
    """A loaded model.

    Args:
        source: where it comes from.
        settings: dtype and pooling.

    Raises:
        StartError: it cannot be loaded.
    """

    def __init__(self, source: Source, settings: Settings) -> None:
        self.on_gpu = on_gpu()
        self.dtype = settings.dtype or ("float16" if self.on_gpu else "float32")
        self._device = torch.device("cuda" if self.on_gpu else "cpu")
        try:
            self._transformer = SentenceTransformer(
                source.path,
                device=str(self._device),
                revision=source.revision,
                local_files_only=source.local,
                model_kwargs={"dtype": getattr(torch, self.dtype)},
            ).eval()
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise StartError(f"--model-id {source.model_id}: it cannot be loaded: {error}") from error
        self.pooling = self._pool(source, settings.pooling)
        self.max_length = int(self._transformer.max_seq_length or 0)
        if not self.max_length:
            raise StartError(f"--model-id {source.model_id}: its configuration does not say how many tokens it takes")
        self.revision = source.revision or self._commit()
        self.prompts = _configuration(source, "config_sentence_transformers.json").get("prompts")
        # The reply is normalised or not as each request asks; cut vectors are normalised after the cut.
        self._modules = [module for module in self._transformer if type(module).__name__ != "Normalize"]
        self.dimensions = self.embed([Encoding([self._padding], [0])]).shape[1]

    @property
    def tokenizer(self) -> Any:
        """Its `tokenizers.Tokenizer`.

        Raises:
            StartError: it has only a slow one.
        """
        backend = getattr(self._transformer.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise StartError("the model has no tokenizer.json: only fast tokenizers are supported")
        return backend

    def embed(self, encodings: Sequence[Encoding]) -> Vectors:
        """The vectors of some inputs, not normalised.

        Args:
            encodings: of the inputs; padded to the longest.

        Returns:
            Array of shape (inputs, dimensions).
        """
        features = self._features(encodings)
        with torch.inference_mode():
            for module in self._modules:
                features = module(features)
            vectors = features["sentence_embedding"].float().cpu().numpy()
        return np.asarray(vectors, dtype=np.float32)

    def overhead(self) -> int:
        """What a forward pass costs beside its tokens, as a number of tokens; measured."""
        rounds = [[self._seconds(tokens) for tokens in MEASURED_TOKENS] for _ in range(MEASUREMENTS)]
        small, large = (min(seconds) for seconds in zip(*rounds, strict=True))
        token = max(large - small, 1e-9) / (MEASURED_TOKENS[1] - MEASURED_TOKENS[0])
        return max(int(small / token), LEAST_OVERHEAD)

    def _seconds(self, tokens: int) -> float:
        length = min(tokens, self.max_length)
        encoding = Encoding([self._padding] * length, [0] * length)
        begin = time.perf_counter()
        self.embed([encoding] * max(tokens // length, 1))
        return time.perf_counter() - begin

    @property
    def _padding(self) -> int:
        return int(self._transformer.tokenizer.pad_token_id or 0)

    def _features(self, encodings: Sequence[Encoding]) -> dict[str, torch.Tensor]:
        shape = (len(encodings), max(len(encoding.ids) for encoding in encodings))
        ids = np.full(shape, self._padding, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        types = np.zeros(shape, dtype=np.int64)
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            ids[row, :length] = encoding.ids
            types[row, :length] = encoding.types
            mask[row, :length] = 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._transformer.tokenizer.model_input_names:
            arrays["token_type_ids"] = types
        return {name: torch.from_numpy(array).to(self._device) for name, array in arrays.items()}

    def _pool(self, source: Source, wanted: str | None) -> str:
        """Sets the pooling that is asked for; returns TEI's name of the one in use."""
        pooling = next((module for module in self._transformer if type(module).__name__ == "Pooling"), None)
        if pooling is None:
            raise StartError(f"--model-id {source.model_id}: a model that pools in its own way is not supported")
        if not hasattr(pooling, "pooling_mode"):
            raise StartError("sentence-transformers is too old; pip install --upgrade 'sentence-transformers>=6'")
        if wanted is None and not _configuration(source, "modules.json"):
            wanted = self._usual_pooling(source)
        if wanted is not None:
            pooling.pooling_mode = POOLING_MODES[wanted]
        names = {mode: name for name, mode in POOLING_MODES.items()}
        return names.get(pooling.pooling_mode, str(pooling.pooling_mode))

    def _usual_pooling(self, source: Source) -> str:
        """TEI's choice for a model that says nothing: the first token of a BERT."""
        if "bert" not in str(self._transformer[0].auto_model.config.model_type).lower():
            raise StartError(
                f"--model-id {source.model_id} does not say how its vectors are pooled; "
                "set --pooling (cls, mean or last_token)"
            )
        log.warning("%s does not say how its vectors are pooled: taking the first token (cls)", source.model_id)
        return "cls"

    def _commit(self) -> str | None:
        commit = getattr(self._transformer[0].auto_model.config, "_commit_hash", None)
        return str(commit) if commit else None


def on_gpu() -> bool:
    """Whether a GPU will run the model."""
    return torch.cuda.is_available()


def _configuration(source: Source, name: str) -> Any:
    """A configuration file of the model; empty where it has none."""
    file = Path(source.path, name)
    if not Path(source.path).is_dir():
        cached = try_to_load_from_cache(source.path, name, revision=source.revision)
        file = Path(cached if isinstance(cached, str) else "")
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
