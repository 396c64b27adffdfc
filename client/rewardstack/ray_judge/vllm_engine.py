"""Run a vLLM engine as a Ray actor that serves vLLM's API without a port.

The actor calls vLLM's web application in its own process. Therefore chat templates, structured outputs, token
probabilities, usage and errors are the same as with `vllm serve`. The service forwards only the requests in
`service.METHODS`, none of which changes weights.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from rewardstack.ray_judge.asgi import App, ask
from rewardstack.ray_judge.guard import guard_children
from rewardstack.ray_judge.options import EngineOptions

ENGINE_FAILED = 1
"""Exit status of an actor whose engine has failed; Ray then restarts the actor."""


class FrozenVllmEngine:
    """An engine whose weights never change.

    Args:
        options: the options of the engine.
    """

    def __init__(self, options: EngineOptions) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
        from vllm.platforms import current_platform
        from vllm.utils.argparse_utils import FlexibleArgumentParser
        from vllm.v1.engine.async_llm import AsyncLLM

        flags = options.flags(uses_gpu=not current_platform.is_cpu())
        self._arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(flags)
        validate_parsed_serve_args(self._arguments)
        self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs.from_cli_args(self._arguments))
        guard_children()
        self._app: App | None = None
        self._app_lock = asyncio.Lock()

    async def ping(self) -> int:
        """Wait until the engine is ready and return its process ID."""
        await self._get_app()
        self._exit_if_failed()
        return os.getpid()

    async def request(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request; return the status and the body of the response.

        Args:
            method: `GET` or `POST`.
            path: a path of vLLM's API.
            body: a JSON document, or empty.
        """
        answer = await ask(await self._get_app(), method, path, body)
        self._exit_if_failed()
        return answer

    async def _get_app(self) -> App:
        async with self._app_lock:
            if self._app is None:
                self._app = await self._build_app()
        return self._app

    async def _build_app(self) -> App:
        from vllm.entrypoints.launchers.api_server.app_state import init_app_state
        from vllm.entrypoints.launchers.app import build_app

        tasks: Any = await self._engine.get_supported_tasks()
        app = build_app(self._arguments, tasks, self._engine.model_config)
        await init_app_state(self._engine, app.state, self._arguments, tasks)
        result: App = app
        return result

    def _exit_if_failed(self) -> None:
        """Exit this process if the engine has failed, so that Ray restarts the actor and callers use another engine."""
        if self._engine.errored:
            os._exit(ENGINE_FAILED)
