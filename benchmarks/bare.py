"""Serve the same score for every sample with bare Flask, as a baseline for the benchmark `result_cache`."""

from __future__ import annotations

from flask import Flask, Response, jsonify, request

SCORE = {"value": 1.0, "status": "ok", "reason": "", "source": "bare", "cached": False, "latency_ms": 0.0}

app = Flask(__name__)


@app.post("/v1/score")
def score() -> Response:
    """Return the same constant score for every item."""
    return jsonify(scores=[SCORE] * len(request.get_json()["items"]))
