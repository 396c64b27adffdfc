#!/usr/bin/env bash
# Asynchronous training, reward by comparison of strings: two GPUs, one that generates.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=launch.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

launch rule_based_async 2 examples.train.async.main_async "${ASYNC[@]}" "${RULE_BASED[@]}" "$@"
