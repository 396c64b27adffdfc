"""One vLLM engine as an actor: its own interface for chats, answered in this process, without a port.

vLLM's application is asked as its server asks it, so that templates, structured outputs, probabilities of tokens, usage
and refusals are those of `vllm serve`. Nothing of it that changes weights is answered (`service.PATHS`).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from rewardstack.ray_judge.asgi import App, ask
from rewardstack.ray_judge.guard import guard_children
from rewardstack.ray_judge.options import EngineOptions

DEAD = 1
"""The exit status by which Ray knows that an actor is to be restarted."""


class FrozenVllmEngine:
    """An engine with the weights that it started with.

    Args:
        options: of it.
    """

    def __init__(self, options: EngineOptions) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
        from vllm.platforms import current_platform
        from vllm.utils.argparse_utils import FlexibleArgumentParser
        from vllm.v1.engine.async_llm import AsyncLLM

        flags = options.flags(on_gpu=not current_platform.is_cpu())
        self._arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(flags)
        validate_parsed_serve_args(self._arguments)
        self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs.from_cli_args(self._arguments))
        guard_children()
        self._app: App | None = None
        self._making = asyncio.Lock()

    async def ping(self) -> int:
        """The id of its process, once it can answer."""
        await self._application()
        self._leave_if_dead()
        return os.getpid()

    async def request(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of its answer.

        Args:
            method: `GET` or `POST`.
            path: of vLLM's interface.
            body: JSON, or nothing.
        """
        answer = await ask(await self._application(), method, path, body)
        self._leave_if_dead()
        return answer

    async def _application(self) -> App:
        async with self._making:
            if self._app is None:
                self._app = await self._make()
        return self._app

    async def _make(self) -> App:
        from vllm.entrypoints.launchers.api_server.app_state import init_app_state
        from vllm.entrypoints.launchers.app import build_app

        tasks: Any = await self._engine.get_supported_tasks()
        app = build_app(self._arguments, tasks, self._engine.model_config)
        await init_app_state(self._engine, app.state, self._arguments, tasks)
        made: App = app
        return made

    def _leave_if_dead(self) -> None:
        """Ends this process where the engine's own has ended: Ray then restarts it, and callers ask another engine."""
        if self._engine.errored:
            os._exit(DEAD)
