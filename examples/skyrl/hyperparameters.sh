# shellcheck shell=bash disable=SC2034
# What the four configurations share; what is set in the environment wins.
: "${POLICY_MODEL:=Qwen/Qwen2.5-0.5B-Instruct}"
: "${REWARD_MODEL:=Qwen/Qwen2.5-1.5B-Instruct}"
: "${REWARD_NUM_ENGINES:=1}"
: "${RULE_DATA_DIR:=$HOME/data/gsm8k}"
: "${JUDGE_DATA_DIR:=$HOME/data/gsm8k_llm_judge_local}"
: "${LOGGER:=console}" # which compare_runs.py reads; or wandb, with WANDB_API_KEY
: "${LOG_DIR:=skyrl-logs}"
: "${CKPT_DIR:=$HOME/ckpts/llm_as_a_judge_local}"

HYPERPARAMETERS=(
  trainer.policy.model.path="$POLICY_MODEL"
  trainer.algorithm.advantage_estimator=grpo
  generator.n_samples_per_prompt=4
  trainer.train_batch_size=16
  trainer.policy_mini_batch_size=16
  trainer.policy.optimizer_config.lr=1.0e-6
  trainer.algorithm.use_kl_loss=true
  trainer.epochs=1
  trainer.update_epochs_per_batch=1
  trainer.micro_forward_batch_size_per_gpu=8
  trainer.micro_train_batch_size_per_gpu=8
  trainer.max_prompt_length=512
  generator.sampling_params.max_generate_length=1024
  generator.sampling_params.temperature=1.0
  generator.batched=false # a response is scored as soon as it is there, up to max_env_workers at a time
  generator.inference_engine.backend=vllm
  generator.inference_engine.run_engines_locally=true
  generator.inference_engine.weight_sync_backend=nccl
  generator.inference_engine.num_engines=1
  generator.inference_engine.tensor_parallel_size=1
  generator.inference_engine.gpu_memory_utilization=0.8
  environment.skyrl_gym.max_env_workers=32
  trainer.strategy=fsdp
  trainer.placement.policy_num_gpus_per_node=1
  trainer.placement.ref_num_gpus_per_node=1
  trainer.eval_before_train=false
  trainer.eval_interval=-1
  trainer.ckpt_interval=10
  trainer.max_ckpts_to_keep=2
  trainer.resume_mode=latest
  trainer.seed=42
  trainer.project_name=llm_as_a_judge_local
  trainer.logger="$LOGGER"
)

# The two modes: one GPU takes turns, or one trains while another generates one step ahead.
SYNC=(trainer.placement.colocate_all=true)
ASYNC=(trainer.placement.colocate_all=false)

# The two rewards, and the data whose rows name them.
RULE_BASED=(
  environment.env_class=gsm8k
  data.train_data="['$RULE_DATA_DIR/train.parquet']"
  data.val_data="['$RULE_DATA_DIR/validation.parquet']"
)
LLM_JUDGE_LOCAL=(
  environment.env_class=llm_as_a_judge_local
  data.train_data="['$JUDGE_DATA_DIR/train.parquet']"
  data.val_data="['$JUDGE_DATA_DIR/validation.parquet']"
)
