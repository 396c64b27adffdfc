"""Score text similarity with an embedding server: Text Embeddings Inference, or OpenAI's `/v1/embeddings`."""

from rewardstack.scorers.embedding.scorer import BATCH_SIZE, Embedding
from rewardstack.scorers.embedding.vectors import VectorStore

__all__ = ["BATCH_SIZE", "Embedding", "VectorStore"]
