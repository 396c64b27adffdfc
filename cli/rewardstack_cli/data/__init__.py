"""Data files of the command line: read rows from JSONL or parquet, write the same rows with their scores."""
