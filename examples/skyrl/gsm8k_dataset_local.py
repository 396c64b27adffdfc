"""GSM8K as SkyRL reads it, for the environment `llm_as_a_judge_local`: train.parquet and validation.parquet.

    python gsm8k_dataset_local.py --output_dir ~/data/gsm8k_llm_judge_local

`--input` names a local copy (a file, or a folder of .jsonl, .json or .parquet) where the hub is out of reach; `sample/`
is a small one, of problems written for this example.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardstack.errors import RewardstackError
from rewardstack_cli.recipes import gsm8k, output

ENVIRONMENT = "llm_as_a_judge_local"
SPLITS = {"train": "train", "test": "validation"}
"""By the name of the data set, the name that SkyRL's examples have for it."""


def main(environment: str = ENVIRONMENT, about: str | None = __doc__) -> int:
    """Writes the data; gives the exit status.

    Args:
        environment: that each row names.
        about: what `--help` says.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output_dir", type=Path, required=True, help="where the two files are written")
    parser.add_argument("--input", default=gsm8k.HUB, help="a local copy, or a name on the hub (%(default)s)")
    parser.add_argument("--train_rows", type=int, help="of training data; by default all, 16 make a step")
    given = parser.parse_args()
    try:
        recipe = argparse.ArgumentParser()
        gsm8k.add_arguments(recipe)
        chosen = argparse.Namespace(input=given.input, test_share=0.1, seed=0)
        prepared = gsm8k.prepare(recipe.parse_args([], chosen))
        splits = {SPLITS[name]: [row_of(one, environment) for one in rows] for name, rows in prepared.splits.items()}
        splits["train"] = splits["train"][: given.train_rows]
        folder = given.output_dir.expanduser()
        report = output.write(folder, gsm8k.NAME, 0, replace(prepared, splits=splits))
    except RewardstackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for about in report["splits"].values():
        print(f"{folder / about['file']}: {about['rows']:,} rows")
    return 0


def row_of(row: dict[str, Any], environment: str) -> dict[str, Any]:
    """A row of `rewardstack prepare gsm8k`, with the columns that SkyRL's environments read.

    Args:
        row: as it is prepared for verl.
        environment: that scores it.
    """
    reference = {"method": "rule", "ground_truth": row["reward_model"]["ground_truth"]}
    kept = {name: row[name] for name in ("data_source", "prompt", "extra_info")}
    return {**kept, "env_class": environment, "reward_spec": reference}


if __name__ == "__main__":
    sys.exit(main())
