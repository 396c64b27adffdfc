#!/usr/bin/env bash
# Synchronous training, reward by comparison of strings: one GPU.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=launch.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

launch rule_based 1 skyrl.train.entrypoints.main_base "${SYNC[@]}" "${RULE_BASED[@]}" "$@"
