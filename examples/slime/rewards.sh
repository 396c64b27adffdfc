#!/usr/bin/env bash
# slime's options for rewards, as an array like those of slime's own scripts. In one of these, in the place of --rm-type:
#
#     source rewards.sh
#     ray job submit ... -- python3 train.py ... ${RM_ARGS[@]}
#
# By itself it prints them. REWARD is http (a reward server; the default), function (this client: the judge is asked
# directly) or group (the same, a group of samples at once).

# A run ends when more than a tenth of a process's last 1,000 samples failed; 1 never ends it.
export REWARDSTACK_MAX_FAILURE_RATE="${REWARDSTACK_MAX_FAILURE_RATE:-0.1}"

REWARD="${REWARD:-http}"
REWARD_TYPE="${REWARD_TYPE:-math}"
REWARD_URL="${REWARD_URL:-http://localhost:6000/get_reward}"

RM_ARGS=(--rm-type "$REWARD_TYPE" --custom-rm-path rewardstack.trainers.slime.reward)
case "$REWARD" in
    http) RM_ARGS=(--rm-type remote_rm --rm-url "$REWARD_URL?reward_type=$REWARD_TYPE") ;;
    function) ;;
    group) RM_ARGS+=(--group-rm) ;;
    *)
        echo "REWARD: http, function or group, not $REWARD" >&2
        RM_ARGS=()
        ;;
esac

[[ "${BASH_SOURCE[0]}" != "$0" ]] || echo "${RM_ARGS[@]}"
[[ ${#RM_ARGS[@]} -gt 0 ]]
