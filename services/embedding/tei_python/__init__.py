"""A server that answers as Text Embeddings Inference does, on sentence-transformers."""
