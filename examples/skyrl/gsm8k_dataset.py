"""GSM8K as SkyRL reads it, for its own environment `gsm8k`, which compares strings: the runs to compare with.

    python gsm8k_dataset.py --output_dir ~/data/gsm8k

Options are those of `gsm8k_dataset_local.py`.
"""

from __future__ import annotations

import sys

from gsm8k_dataset_local import main

if __name__ == "__main__":
    sys.exit(main("gsm8k", __doc__))
