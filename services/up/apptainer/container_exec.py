"""Run programs in Apptainer images: build the `apptainer exec` command of each program."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from services.gateway import tls
from services.judge import engine
from services.judge.model import Model
from services.models.machine import Gpu, gpus
from services.stack.errors import StackError
from services.stack.rundir import CHART_FILES, ROOT, RunDir
from services.stack.services_table import Service
from services.stack.settings import USERS_FILES, Settings
from services.up import model_servers
from services.up.apptainer.images import IMAGES, Image, runtime
from services.up.model_servers import EMBEDDING, REWARD_MODEL, ModelServer, is_external, replica_count
from services.up.native.programs import IN_IMAGE, Program
from services.up.native.stack import Launcher, Runtime
from services.up.services import LOADING, kind_of

BACKEND = "apptainer"
ENTRY_POINT = "/.singularity.d/runscript"
"""Script that `apptainer run` starts: the entry point of the OCI image from which the Apptainer image was built."""
PYTHON = "python"
IMAGE = {"cache": "redis", "queue": "redis", "rules": "rules", "worker": "rules", "gateway": "gateway"}
"""Image by kind of service. Model servers are omitted, because their images depend on the machine."""
SAME_IMAGE = {"reward-model": "judge"}
"""Kinds of services that use the image of another kind."""
SEPARATORS = ':,\\"'
"""Separators in the value of the `--bind` option. A path with one of them cannot be bound."""
PATH_IN_ARGUMENT = re.compile(r"""(?<![^="'\s])/[^"',\s]+""")
"""Matches a path in `--flag=/path`, `name=/path` or JSON."""


def get_image(service: str, on_gpu: bool | None = None) -> Image:
    """Return the image of a service.

    Args:
        service: name of the service.
        on_gpu: whether the service uses a GPU; None if it uses a GPU whenever this machine has one.
    """
    kind = SAME_IMAGE.get(kind_of(service), kind_of(service))
    return IMAGES[IMAGE.get(kind) or (kind if (gpus() if on_gpu is None else on_gpu) else f"{kind}-cpu")]


class ImageLauncher(Launcher):
    """Builds the commands of model servers in images. Each command starts the entry point of an image."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """Return the vLLM of the image."""
        return engine.Vllm(PYTHON, "" if gpus else "cpu")

    def model(self, server: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """Return the model of a server: a folder, or a name that the server looks up on the hub."""
        name = model_servers.served_model(server, settings, default_model(settings))
        local = os.path.isdir(name)
        # Return the real path, because relative links in the folder resolve only from there.
        return Model(os.path.realpath(name) if local else name, name, local)

    def serve(
        self, vllm: engine.Vllm, model: Model, listen: Sequence[str], settings: Settings, service: Service
    ) -> list[str]:
        """Return the image's entry point with the arguments of `vllm serve`.

        Paths of files in the user's flags become absolute.
        """
        more_options = shlex.join(map(_absolute, shlex.split(settings[service.more_options])))
        resolved = Settings({**settings, service.more_options: more_options})
        return [ENTRY_POINT, *engine.arguments(vllm, model, listen, resolved, service)]

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """Return the command of TEI.

        `--prometheus-port 0` selects any free port. Nothing uses that port, because TEI serves metrics on `port`, too.
        """
        model = settings["EMBEDDING_MODEL"] or settings[f"EMBEDDING_{'GPU' if gpus else 'CPU'}_MODEL"]
        source = os.path.realpath(model) if os.path.isdir(model) else model
        listen = ["--hostname", "127.0.0.1", "--port", str(port), "--prometheus-port", "0"]
        return [ENTRY_POINT, "--model-id", source, *listen]


def default_model(settings: Settings) -> str:
    """Return the model of the default judge."""
    return settings["JUDGE_MODEL"] or settings["JUDGE_GPU_MODEL" if gpus() else "JUDGE_CPU_MODEL"]


def unsupported_reason(server: ModelServer, settings: Settings, servers: Sequence[ModelServer] = ()) -> str:
    """Return the reason why a model server cannot run on this machine; empty if it can.

    Args:
        server: server to check.
        settings: settings of the stack.
        servers: all servers that may be started; judges and the reward model get GPUs before the embedding server.
    """
    on_gpu = bool(gpus()) and (server != EMBEDDING or _gpus_of_vllm(settings, servers) < len(gpus()))
    image = get_image(server.name, on_gpu)
    if image.file(settings).exists():
        return ""
    why = "no GPU is left for it, and the CPU image " if gpus() and not on_gpu else ""
    return f"{why}{image.file(settings)} is missing; make sif t={image.name} builds it"


def _gpus_of_vllm(settings: Settings, servers: Sequence[ModelServer]) -> int:
    """Return the number of GPUs that the judges and the reward model among these servers need."""
    supported = [judge for judge in model_servers.judges(servers) if not unsupported_reason(judge, settings)]
    wanted = [judge for judge in supported if settings[judge.switch] != "off" and not is_external(judge, settings)]
    judges = settings.number("JUDGE_TENSOR_PARALLEL_SIZE") * sum(replica_count(judge, settings) for judge in wanted)
    return judges + (REWARD_MODEL in servers)


@dataclass(frozen=True)
class ContainerExec:
    """Converts programs to commands that run them in their images with `apptainer exec`.

    Args:
        settings: settings of the stack.
        run: run directory, which has the same path in the container.
        apptainer: path of Apptainer.
    """

    settings: Settings
    run: RunDir
    apptainer: str

    def __call__(self, program: Program) -> Program:
        """Return the program with a command that runs it in its image.

        The container can access only the folders and files that `_binds` yields.

        Raises:
            StackError: the image is missing, or a path cannot be bound.
        """
        image = get_image(program.name, _has_gpu(program))
        if not (file := image.file(self.settings)).exists():
            raise StackError(f"{file} is missing", f"make sif t={image.name}")
        files = {name: os.pathsep.join(map(str, self.settings.files(name))) for name in USERS_FILES}
        own = {name: files.get(name, value) for name, value in program.environment.items()} | self._variables(program)
        # Keep Apptainer from writing to the user's home.
        environment = {"APPTAINER_CONFIGDIR": str(self.run.caches / "apptainer")}
        return replace(
            program,
            prefix=[*self._prefix(program), str(file)],
            command=[PYTHON if part == sys.executable else part for part in program.command],
            environment={**environment, **{f"{IN_IMAGE}{name}": value for name, value in own.items()}},
            versions={**program.versions, "its image": str(file.stat().st_mtime_ns)},
        )

    def _variables(self, program: Program) -> dict[str, str]:
        """Return the variables that a program needs in an image, in addition to `program.environment`."""
        own = {"LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1", "TMPDIR": str(self.run.temporary)}
        if kind_of(program.name) in LOADING:
            own["HF_HOME"] = str(self._hub())
            # TEI reads this variable, which its image sets to another folder.
            own["HUGGINGFACE_HUB_CACHE"] = program.environment.get("HF_HUB_CACHE") or str(self._hub() / "hub")
        return own

    def _prefix(self, program: Program) -> list[str]:
        nv = ["--nv"] if kind_of(program.name) in LOADING and _has_gpu(program) else []
        binds = [part for bind in self._binds(program) for part in ("--bind", bind)]
        # Without `--no-eval`, a shell would expand the values of environment variables.
        command = [self.apptainer, "--quiet", "exec", "--cleanenv", "--no-eval", "--contain"]
        # The home in the container is a folder of the stack, not the user's home.
        return [*command, "--home", _bind_path(self.run.caches), "--pwd", str(self.run.path), *nv, *binds]

    def _binds(self, program: Program) -> Iterator[str]:
        """Yield the binds of a program.

        The stack's own folders come last, because a later bind of a folder that contains one of them would hide it.
        """
        yield _read_only(CHART_FILES)
        kind = kind_of(program.name)
        if IMAGE.get(kind) == "rules":
            for path in dict.fromkeys(self._user_files()):
                yield _read_only(path)
        elif kind in LOADING:
            for path in find_paths(program.command[1:]):
                if not any(path.is_relative_to(seen) for seen in (self.run.path, CHART_FILES)):
                    yield _read_only(path)
            own = program.environment.get("HF_HUB_CACHE")
            for hub in dict.fromkeys([self._hub(), Path(own) if own else self._hub()]):
                hub.mkdir(parents=True, exist_ok=True)
                yield _bind_path(hub)
        yield from dict.fromkeys([_bind_path(self.run.path), _bind_path(self.run.temporary)])

    def _user_files(self) -> Iterator[Path]:
        """Yield the folders with the user's files, and the CA file."""
        for file in [file for name in USERS_FILES for file in self.settings.files(name)]:
            yield _folder_or_file(file)
        if trusted := tls.trusted_ca_file(self.settings):
            yield Path(trusted)

    def _hub(self) -> Path:
        """Return the folder for models from the hub: HF_HOME, or a folder in the run directory."""
        return Path(os.environ.get("HF_HOME") or self.run.caches / "huggingface").absolute()


def images_runtime(settings: Settings, run: RunDir) -> Runtime:
    """Return the runtime that runs each program in its image.

    Raises:
        StackError: Apptainer is not installed, or too old.
    """
    programs = {"nginx": "nginx", "redis-server": "redis-server"}
    return Runtime(programs, ImageLauncher(), ContainerExec(settings, run, runtime()), BACKEND)


def find_paths(arguments: Iterable[str]) -> list[Path]:
    """Return the files and folders that arguments name by absolute path, and the targets of links in these folders.

    The targets are included, because the hub's client stores a model as a folder of links into its cache.
    """
    found = dict[Path, None]()
    for argument in arguments:
        for path in map(Path, [argument] if argument.startswith("/") else PATH_IN_ARGUMENT.findall(argument)):
            if os.path.isdir(path):
                found |= dict.fromkeys([path, *_link_targets(path)])
            elif os.path.isfile(path):
                found[path] = None
    return [*found]


def _link_targets(folder: Path) -> list[Path]:
    """Return the folders and files to bind so that links in a folder and its direct subfolders resolve."""
    subfolders = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
    links = [entry for parent in (folder, *subfolders) for entry in parent.iterdir() if entry.is_symlink()]
    bound = [folder]
    while links:
        link = links.pop()
        hop = Path(os.path.normpath(link.parent / os.readlink(link)))
        if not hop.exists():
            continue
        if not any(hop.is_relative_to(path) for path in bound):
            bound.append(hop if hop.is_dir() else _folder_or_file(hop))
        if hop.is_symlink() and hop not in bound:
            links.append(hop)
    return bound[1:]


def _absolute(argument: str) -> str:
    """Return an argument in which the relative path of a file is replaced by the absolute path.

    The path is the whole argument, or the part after the last `=`. Users write paths relative to the root of the
    checkout, but the program runs in another directory. An argument without such a path is returned unchanged.
    """
    before, equals, value = argument.rpartition("=")
    return f"{before}{equals}{ROOT / value}" if os.path.isfile(ROOT / value) else argument


def _folder_or_file(file: Path) -> Path:
    """Return the folder of a file, so that the container can read files next to it.

    If the folder is the user's home or contains it, return the file itself.
    """
    return file if Path.home().resolve().is_relative_to(file.parent) else file.parent


def _has_gpu(program: Program) -> bool:
    return bool(program.environment.get("CUDA_VISIBLE_DEVICES"))


def _read_only(path: Path) -> str:
    return f"{_bind_path(path)}:{path}:ro"


def _bind_path(path: Path) -> str:
    if {*str(path)} & {*SEPARATORS}:
        raise StackError(f"{BACKEND} cannot bind {path}: the path holds one of {' '.join(SEPARATORS)}", "rename it")
    return str(path)
