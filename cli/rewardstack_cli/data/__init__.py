"""Data files of the command line: read rows from JSONL or parquet, and write the same rows with their scores."""
