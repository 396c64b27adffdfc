"""Read rows from JSONL or parquet files, and write the same rows with their scores."""
