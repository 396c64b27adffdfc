"""Rewards by name for ms-swift: `--external_plugins plugin.py --reward_funcs gsm8k brevity judge`."""

from rewardstack.trainers.ms_swift import register

register("gsm8k", "gsm8k")
register("brevity", "rule_remote_length", reference=None, extra_info={"max_length": 2, "length_buffer": 40})
register("judge", "llm_judge_remote")
