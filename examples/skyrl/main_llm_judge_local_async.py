"""As `main_llm_judge_local.py`, with generation one step ahead of training, by SkyRL's `AsyncRayPPOTrainer`.

That class is in SkyRL's checkout, below `examples/train/async`, and not in its package: the checkout is the working
directory, or on `PYTHONPATH`.
"""

from __future__ import annotations

from main_llm_judge_local import main

EXPERIMENT = "examples.train.async.main_async:AsyncPPOExp"

if __name__ == "__main__":
    main(EXPERIMENT)
