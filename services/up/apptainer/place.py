"""Programs out of images: the command that runs each there, and the model servers' own."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from services.gateway import tls
from services.judge import engine
from services.judge.model import Model
from services.models.machine import Gpu, gpus
from services.stack.errors import StackError
from services.stack.rundir import CHART_FILES, RunDir
from services.stack.settings import USERS_FILES, Settings
from services.up import model_servers
from services.up.apptainer import named
from services.up.apptainer.images import IMAGES, Image, runtime
from services.up.model_servers import EMBEDDING, ModelServer, copies, elsewhere
from services.up.native.models import Launcher
from services.up.native.programs import IN_IMAGE, Program
from services.up.native.stack import Runtime
from services.up.services import LOADING, kind_of

WAY = "apptainer"
ENTRY_POINT = "/.singularity.d/runscript"
"""What `apptainer run` starts in an image: of a model server's, the image's own entry point."""
PYTHON = "python"
IMAGE = {"cache": "redis", "queue": "redis", "rules": "rules", "worker": "rules", "gateway": "gateway"}
"""Of each kind of service, but for those that differ with the machine."""
APART = ':,\\"'
"""What parts the sides of a bind, so that no path can hold it."""


def image_of(service: str, on_gpu: bool | None = None) -> Image:
    """The image of a service.

    Args:
        service: its name.
        on_gpu: whether it has a GPU; None for whether this machine has one.
    """
    kind = kind_of(service)
    return IMAGES[IMAGE.get(kind) or (kind if (gpus() if on_gpu is None else on_gpu) else f"{kind}-cpu")]


class FromImages(Launcher):
    """Model servers by their images' own entry points."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """That of the image, which knows all flags: it is as new as its setting names it."""
        return engine.Vllm(PYTHON, "" if gpus else "cpu")

    def model(self, judge: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """The one that is asked for: a folder, or a name that the server itself looks for on the hub."""
        name = judge.model or default_model(settings)
        local = os.path.isdir(name)
        # Relative links in it begin where it really is.
        return Model(os.path.realpath(name) if local else name, name, local)

    def judge(self, vllm: engine.Vllm, model: Model, listen: Sequence[str], settings: Settings) -> list[str]:
        """As `vllm serve` takes it."""
        # It works in another folder there.
        further = map(named.absolute, shlex.split(settings["JUDGE_VLLM_ARGS"]))
        own = Settings({**settings, "JUDGE_VLLM_ARGS": shlex.join(further)})
        return [ENTRY_POINT, *engine.arguments(vllm, model, listen, own)]

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """As TEI takes it; it shows its metrics at that port, too, and the kernel chooses the one for them alone."""
        model = settings["EMBEDDING_MODEL"] or settings[f"EMBEDDING_{'GPU' if gpus else 'CPU'}_MODEL"]
        source = os.path.realpath(model) if os.path.isdir(model) else model
        listen = ["--hostname", "127.0.0.1", "--port", str(port), "--prometheus-port", "0"]
        return [ENTRY_POINT, "--model-id", source, *listen]


def default_model(settings: Settings) -> str:
    """The model of the default judge."""
    return settings["JUDGE_MODEL"] or settings["JUDGE_GPU_MODEL" if gpus() else "JUDGE_CPU_MODEL"]


def obstacle(server: ModelServer, settings: Settings, servers: Sequence[ModelServer] = ()) -> str:
    """Why a model server cannot run here; empty where it can.

    Args:
        server: that is to run.
        settings: of the stack.
        servers: from which some are chosen: judges come first to the GPUs.
    """
    on_gpu = bool(gpus()) and (server != EMBEDDING or _judges_take(settings, servers) < len(gpus()))
    image = image_of(server.name, on_gpu)
    if image.file(settings).exists():
        return ""
    why = "no GPU is left for it, and " if gpus() and not on_gpu else ""
    return f"{why}{image.file(settings)} is not there (make sif t={image.name})"


def _judges_take(settings: Settings, servers: Sequence[ModelServer]) -> int:
    """How many GPUs the judges among these take."""
    here = [judge for judge in model_servers.judges(servers) if not obstacle(judge, settings)]
    wanted = [judge for judge in here if settings[judge.switch] != "off" and not elsewhere(judge, settings)]
    return settings.number("JUDGE_TENSOR_PARALLEL_SIZE") * sum(copies(judge, settings) for judge in wanted)


@dataclass(frozen=True)
class Inside:
    """A program as it is started in its image.

    Args:
        settings: of the stack.
        run: its directory, which is there under its own path.
        apptainer: path of the program.
    """

    settings: Settings
    run: RunDir
    apptainer: str

    def __call__(self, program: Program) -> Program:
        """The program, with a command before it that sees the run directory, the user's files and models alone.

        Raises:
            StackError: its image is not there, or a path cannot be given.
        """
        image = image_of(program.name, _has_gpu(program))
        if not (file := image.file(self.settings)).exists():
            raise StackError(f"{file} is not there", f"make sif t={image.name}")
        files = {name: os.pathsep.join(map(str, self.settings.files(name))) for name in USERS_FILES}
        own = {name: files.get(name, value) for name, value in program.environment.items()} | self._variables(program)
        command = [PYTHON if part == sys.executable else part for part in program.command]
        return replace(
            program,
            prefix=[*self._prefix(program), str(file)],
            command=command,
            environment={
                # Apptainer itself writes nothing into the user's home.
                "APPTAINER_CONFIGDIR": str(self.run.caches / "apptainer"),
                **{f"{IN_IMAGE}{name}": value for name, value in own.items()},
            },
            versions={**program.versions, "its image": image.built(self.settings)},
        )

    def _variables(self, program: Program) -> dict[str, str]:
        """What a program is given because it runs in an image."""
        own = {"LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1", "TMPDIR": str(self.run.temporary)}
        if kind_of(program.name) in LOADING:
            own["HF_HOME"] = str(self._hub())
            # As TEI calls it; its image names a folder of its own.
            own["HUGGINGFACE_HUB_CACHE"] = program.environment.get("HF_HUB_CACHE") or str(self._hub() / "hub")
        return own

    def _prefix(self, program: Program) -> list[str]:
        kind = kind_of(program.name)
        nv = ["--nv"] if kind in LOADING and _has_gpu(program) else []
        binds = [part for bind in self._binds(program) for part in ("--bind", bind)]
        # `--no-eval`: a shell would read what is in the variables. The home in there is a folder of the stack's own.
        return [
            *(self.apptainer, "--quiet", "exec", "--cleanenv", "--no-eval", "--contain"),
            *("--home", _plain(self.run.caches), "--pwd", str(self.run.path)),
            *nv,
            *binds,
        ]

    def _binds(self, program: Program) -> Iterator[str]:
        """The folders that a program sees; the run directory comes last, for it may be in one of the others."""
        yield _read_only(CHART_FILES)
        kind = kind_of(program.name)
        if IMAGE.get(kind) == "rules":
            for path in dict.fromkeys(self._users()):
                yield _read_only(path)
        elif kind in LOADING:
            for path in named.named(program.command[1:]):
                if not any(path.is_relative_to(seen) for seen in (self.run.path, CHART_FILES)):
                    yield _read_only(path)
            own = program.environment.get("HF_HUB_CACHE")
            for hub in dict.fromkeys([self._hub(), Path(own) if own else self._hub()]):
                hub.mkdir(parents=True, exist_ok=True)
                yield _plain(hub)
        yield from dict.fromkeys([_plain(self.run.path), _plain(self.run.temporary)])

    def _users(self) -> Iterator[Path]:
        """The folders of the user's files; of one that lies in the home itself, or above it, the file alone."""
        for file in [file for name in USERS_FILES for file in self.settings.files(name)]:
            yield named.folder_or_file(file)
        if trusted := tls.trusted(self.settings):
            yield Path(trusted)

    def _hub(self) -> Path:
        """Where models of a hub are: where the user says, never in the home by itself."""
        return Path(os.environ.get("HF_HOME") or self.run.caches / "huggingface").absolute()


def _has_gpu(program: Program) -> bool:
    return bool(program.environment.get("CUDA_VISIBLE_DEVICES"))


def runtime_of(settings: Settings, run: RunDir) -> Runtime:
    """Where programs run.

    Raises:
        StackError: Apptainer is not installed.
    """
    programs = {"nginx": "nginx", "redis-server": "redis-server"}
    return Runtime(programs, FromImages(), Inside(settings, run, runtime()), WAY)


def _read_only(path: Path) -> str:
    return f"{_plain(path)}:{path}:ro"


def _plain(path: Path) -> str:
    if {*str(path)} & {*APART}:
        raise StackError(f"{path} holds one of {' '.join(APART)}, with which {WAY} binds no folder", "rename it")
    return str(path)
