"""Store the ID of the job that scores a data file, in `OUT.job` next to the output file OUT."""

from __future__ import annotations

import json
from pathlib import Path


class JobFile:
    """The file `OUT.job`.

    Args:
        output: OUT; None to store nothing.
    """

    def __init__(self, output: Path | None) -> None:
        self._path = None if output is None else output.with_name(output.name + ".job")

    def get(self, digest: str) -> str | None:
        """Return the ID of the stored job; None if no job is stored, or if it was submitted with another digest.

        Args:
            digest: digest of the samples and of the provenance of their scores.
        """
        if self._path is None or not self._path.is_file():
            return None
        try:
            record = json.loads(self._path.read_bytes())
        except ValueError:
            return None
        if not isinstance(record, dict) or record.get("samples") != digest:
            return None
        job_id = record.get("job_id")
        return job_id if isinstance(job_id, str) and job_id.isalnum() else None

    def put(self, job_id: str, digest: str) -> None:
        """Store the ID and the digest of a job, so that a later command continues with this job."""
        if self._path is None:
            return
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text(json.dumps({"job_id": job_id, "samples": digest}) + "\n")
        temporary.replace(self._path)

    def remove(self) -> None:
        """Remove the file."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
