"""Data files of the command line: rows in from JSONL or parquet, the same rows with their scores out."""
