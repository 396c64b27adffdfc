"""SkyRL 0.3 and later: an environment that scores each response, and an entrypoint that trains with the environment.

    trainer.override_entrypoint=rewardstack.trainers.skyrl
    environment.env_class=rewardstack

`skyrl.train.entrypoints.main_base` then calls `main` in this module. If a row has an `env_class`, it takes precedence
over `environment.env_class`. A row's `data_source` names its route (how to score its responses). Three keys are
optional:

- `environment.skyrl_gym.rewardstack.data_source=ROUTE`: the route of every row, instead of the row's `data_source`.
- `environment.skyrl_gym.rewardstack.on_error`: the error policy for samples without a score.
- `environment.skyrl_gym.max_env_workers`: how many responses are scored concurrently (32 by default).

SkyRL creates an environment for each response, with the columns of the row, and calls `step` in a thread pool
(`skyrl/train/generators/skyrl_gym_generator.py`). It logs the mean of each number from `get_metrics` as
`environment/METRIC`. SkyRL raises AssertionError for a reward of None, so `on_error=none` is not allowed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from importlib import import_module
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from rewardstack import api
from rewardstack.core.messages import last_text
from rewardstack.errors import RequestError
from rewardstack.score import Request, Score
from rewardstack.settings_table import TABLE
from rewardstack.trainers.columns import add_task, as_options, first_present, merge_options

NAME = "rewardstack"
"""The environment's name in rows and in the configuration."""
REFERENCES = ("reward_spec", "reward_model")
"""Columns that may have the reference as `ground_truth`; the first column that has it is used."""
OVERRIDE = "trainer.override_entrypoint="
EXPERIMENT = "skyrl.train.entrypoints.main_base:BasePPOExp"
NO_NONE = (
    "SkyRL asserts that a reward is not None: use 'zero' (and watch environment/failed and environment/unscored in the "
    "logs), 'lexical' or 'raise'"
)

GROUPS = (
    "raise environment.skyrl_gym.max_env_workers to the number of responses in flight; keep generator.batched=false"
)
"""The remedy if a group has more members than SkyRL scores concurrently."""


class RewardstackEnv(BaseTextEnv):
    """An environment with a single step, which scores one response.

    Args:
        env_config: the keys below `environment.skyrl_gym.rewardstack`: `data_source`, `on_error`, and `threads`, the
            number of responses that SkyRL scores concurrently. `configure` sets `threads`; without `threads`, the
            sizes of groups are not checked.
        extras: the columns of the row; `data_source`, `extra_info`, `reward_spec` and `reward_model` are read.
        data_source: the route, if `env_config` has none; takes precedence over the row's `data_source`.
        options: default options of the route; the row's `extra_info` takes precedence.
        on_error: policy for samples without a score (`zero`, `lexical`, `raise`); None for the route's policy.

    Raises:
        RequestError: no route is named, or `on_error` is `none`.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        data_source: str | None = None,
        options: Mapping[str, Any] | None = None,
        on_error: str | None = None,
    ) -> None:
        super().__init__()
        row = extras or {}
        self._source = _get_key(env_config, "data_source") or data_source or row.get("data_source")
        self._on_error: Any = _get_key(env_config, "on_error") or on_error
        self._threads: int | None = _get_key(env_config, "threads")
        if not self._source:
            raise RequestError(
                "data_source: missing in the row; add the column, or set environment.skyrl_gym.rewardstack.data_source",
                "data_source",
            )
        if self._on_error == "none":
            raise RequestError(f"on_error: {NO_NONE}", "on_error")
        specs = [spec for name in REFERENCES if isinstance(spec := row.get(name), Mapping)]
        self._reference = first_present(spec.get("ground_truth") for spec in specs)
        self._extra = merge_options(row.get("extra_info"), as_options(options, "options"))
        self._score: Score | None = None

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Return the prompt unchanged. Store its last user message as the task for judges if the row has no task."""
        self._extra = add_task(self._extra, last_text(prompt, "user") or "")
        return prompt, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Return the reward of the response `action`, and end the episode; `metadata` has the status and the reason.

        Raises:
            RequestError: the response has no score and its route has `on_error = none`, or a judge compares groups
                with more members than SkyRL scores concurrently.
            ConfigError, ScoringError, FailureRateError: see `rewardstack.score`.
        """
        request = Request(str(self._source), action, self._reference, self._extra)
        if self._threads is not None:
            api.check_groups([request], GROUPS, self._threads)
        self._score = score = api.score([request], on_error=self._on_error)[0]
        if score.value is None:
            raise RequestError(f"on_error of the sample's route is 'none': {NO_NONE}", "on_error")
        metadata = {"status": score.status, "reason": score.reason, "source": score.source, **score.details}
        return BaseTextEnvStepOutput(observations=[], reward=score.value, done=True, metadata=metadata)

    def get_metrics(self) -> dict[str, float]:
        """Return the numbers in `Score.details`, such as `acc`, `ok`, `unscored` and `failed`, without the reward."""
        if self._score is None:
            return {}
        return {name: value for name, value in self._score.details.items() if name != "score" and value is not None}


def main() -> None:
    """Train with the environment and the SkyRL configuration on the command line."""
    train(configure([argument for argument in sys.argv[1:] if not argument.startswith(OVERRIDE)]))


def configure(arguments: Sequence[str], name: str = NAME) -> Any:
    """Return SkyRL's configuration after validating it and connecting this process to the Ray cluster.

    Args:
        arguments: items `KEY=VALUE`, as for SkyRL's own entrypoints.
        name: the environment's name; its keys are below `environment.skyrl_gym.NAME`.

    Raises:
        ValueError, AssertionError: SkyRL rejects a key or a value.
    """
    from skyrl.train.utils import initialize_ray
    from skyrl.train.utils.utils import validate_cfg

    config = compose(arguments, name)
    validate_cfg(config)
    gym = config.environment.skyrl_gym
    getattr(gym, name).threads = 1 if config.generator.batched else max(gym.max_env_workers, 1)
    initialize_ray(config)
    return config


def compose(arguments: Sequence[str], name: str = NAME) -> Any:
    """Return SkyRL's configuration with the environment's keys, without validating it.

    Args:
        arguments: items `KEY=VALUE`.
        name: the environment's name.

    Raises:
        ValueError: a key is unknown.
    """
    from skyrl.train import config

    settings = [(key, Any, field(default=None)) for key in ("data_source", "on_error", "threads")]
    config_class = make_dataclass("RewardstackConfig", settings, bases=(config.BaseConfig,))
    gym = _add_field(config.SkyRLGymConfig, name, config_class)
    environment = _add_field(config.EnvironmentConfig, "skyrl_gym", gym)
    return _add_field(config.SkyRLTrainConfig, "environment", environment).from_cli_overrides(list(arguments))


def train(
    config: Any, name: str = NAME, entry_point: str = f"{__name__}:RewardstackEnv", experiment: str = EXPERIMENT
) -> None:
    """Register the environment and train in a Ray task; return when training ends.

    Args:
        config: the result of `configure`.
        name: the environment's name.
        entry_point: the environment's class, as `MODULE:CLASS`.
        experiment: the class that trains, as `MODULE:CLASS`; the default is SkyRL's synchronous trainer.

    Raises:
        RayTaskError: training failed.
    """
    import ray

    environment = {variable: text for variable, text in os.environ.items() if variable in TABLE}
    ray.get(ray.remote(num_cpus=1)(_experiment).remote(config, name, entry_point, experiment, environment))


def _experiment(config: Any, name: str, entry_point: str, experiment: str, environment: Mapping[str, str]) -> None:
    """Run the experiment in this Ray worker; `environment` replaces the worker's rewardstack environment variables."""
    from skyrl_gym.envs import register

    for variable in TABLE:
        os.environ.pop(variable, None)
    os.environ.update(environment)
    register(id=name, entry_point=entry_point)
    module, _, attribute = experiment.partition(":")
    getattr(import_module(module), attribute)(config).run()


def _get_key(env_config: Any, key: str) -> Any:
    return env_config.get(key) if isinstance(env_config, Mapping) else getattr(env_config, key, None)


def _add_field(base: type, key: str, kind: type) -> Any:
    """Return a subclass of a SkyRL configuration class, with the field `key` of type `kind`."""
    return make_dataclass(base.__name__, [(key, kind, field(default_factory=kind))], bases=(base,))
