"""ROLL's worker for remote rewards, with a reward server's addresses.

`worker_cls: reward_worker.RewardServerWorker` of `rewards.yaml` loads it, so its folder must be on `PYTHONPATH`. ROLL's
own class reads the addresses from `meta_info["reward_system_config"]`, which no option of its configuration sets.
"""

from __future__ import annotations

import os
from typing import Any

from roll.distributed.scheduler.decorator import Dispatch, register
from roll.pipeline.rlvr.rewards.remote_reward_system_worker import RemoteRewardSystemWorker


class RewardServerWorker(RemoteRewardSystemWorker):
    """Asks the one reward server of `REWARD_SERVER_URL`, by the reward function or route of `REWARD_TYPE`."""

    @register(dispatch_mode=Dispatch.DP_MP_COMPUTE, clear_cache=False)
    def compute_rewards(self, data: Any) -> Any:
        """As ROLL's class does."""
        url, reward_type = os.environ["REWARD_SERVER_URL"].rstrip("/"), os.environ.get("REWARD_TYPE", "math")
        data.meta_info["reward_system_config"] = {
            "submit_url": f"{url}/roll/submit?reward_type={reward_type}",
            "get_result_url": f"{url}/roll/result",
            "xrl_authorization": os.environ.get("REWARD_SERVER_API_KEY", "none"),
        }
        return super().compute_rewards(data)
