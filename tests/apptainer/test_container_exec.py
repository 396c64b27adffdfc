"""Each program is started in its image, where it sees what is its own and nothing of the user's home or shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.rundir import CHART_FILES, ROOT, RunDir
from services.stack.settings import Settings
from services.up.apptainer import container_exec as module
from services.up.apptainer.container_exec import ENTRY_POINT, ContainerExec, ImageLauncher, unsupported_reason
from services.up.model_servers import EMBEDDING, JUDGE
from services.up.native import stack
from services.up.native.programs import IN_IMAGE, Program
from services.up.native.stack import Runtime

PROGRAMS = {"nginx": "nginx", "redis-server": "redis-server"}
APPTAINER = "/usr/bin/apptainer"


@pytest.fixture(params=[0, 1, 2], ids=["processor", "gpu", "two gpus"])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A machine with so many GPUs."""
    found = [module.Gpu(str(number), 80 * 2**30) for number in range(request.param)]
    monkeypatch.setattr("services.models.machine.gpus", lambda: found)
    monkeypatch.setattr(module, "gpus", lambda: found)
    yield request.param


def described(settings: Settings, run: RunDir) -> dict[str, Program]:
    """The programs of a whole stack, by name."""
    runtime = Runtime(PROGRAMS, ImageLauncher(), ContainerExec(settings, run, APPTAINER), "apptainer")
    made = stack.describe(settings, run, runtime, [JUDGE, EMBEDDING], None)
    assert made.backend == made.to_state(1).backend == "apptainer"
    return {program.name: program for program in made.programs}


def binds(program: Program) -> list[str]:
    """What it sees of the machine."""
    return [after for option, after in zip(program.prefix, program.prefix[1:], strict=False) if option == "--bind"]


def test_images(settings: Settings, run: RunDir, gpus: int) -> None:
    """Every program runs in its image; a model server in that for its GPU where it has one, which judges take first."""
    made = described(settings, run)
    images = {name: Path(program.prefix[-1]).stem for name, program in made.items()}
    on_gpu = {*("judge", "embedding")[:gpus]}
    models = {name: name if name in on_gpu else f"{name}-cpu" for name in ("judge", "embedding")}
    rest = {"cache": "redis", "queue": "redis", "rules": "rules", "worker": "rules", "gateway": "gateway"}
    assert images == {**rest, **models}
    assert {name for name, program in made.items() if "--nv" in program.prefix} == on_gpu
    for program in made.values():
        assert {"--cleanenv", "--no-eval", "--contain"} <= {*program.prefix}


def test_nothing_of_the_machine(settings: Settings, run: RunDir, gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is given this machine's Python, a secret, or other folders than the stack's own and the models'."""
    monkeypatch.setenv("HF_HOME", str(run.path.parent / "models"))
    settings["LLM_JUDGE_SERVER_API_KEY"] = "sesame"
    for name, program in described(settings, run).items():
        said = str(program.description)
        assert sys.executable not in said and "sesame" not in said
        own = {str(run.path), str(run.temporary), f"{CHART_FILES}:{CHART_FILES}:ro"}
        more = {str(run.path.parent / "models")} if name in ("judge", "embedding") else set()
        assert {*binds(program)} == own | more
        assert program.environment[f"{IN_IMAGE}PYTHONNOUSERSITE"] == "1"
        assert all(variable.startswith("APPTAINER") for variable in program.environment)


def test_models_are_not_in_the_home(
    settings: Settings, run: RunDir, gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models of a hub go to the run directory where HF_HOME says nothing else."""
    monkeypatch.delenv("HF_HOME", raising=False)
    judge = described(settings, run)["judge"]
    assert judge.environment[f"{IN_IMAGE}HF_HOME"] == str(run.caches / "huggingface")


def test_model_servers(settings: Settings, run: RunDir, gpus: int) -> None:
    """A judge is the image's own entry point, on a socket; the embedding server listens on loopback alone."""
    made = described(settings, run)
    command = [*made["judge"].command]
    model = settings["JUDGE_GPU_MODEL" if gpus else "JUDGE_CPU_MODEL"]
    assert command[:4] == [ENTRY_POINT, model, "--uds", str(run.socket("judge"))]
    assert command[command.index("--served-model-name") + 1] == model
    command = [*made["embedding"].command]
    assert command[command.index("--hostname") + 1] == "127.0.0.1"
    assert made["embedding"].keys == {}
    settings["EMBEDDING_SERVER_API_KEY"] = "sesame"
    keyed = described(settings, run)["embedding"].description["command"]
    assert keyed.index("sh") < keyed.index(f"API_KEY={run.secrets}/embedding_server_api_key") < keyed.index(ENTRY_POINT)


def test_folder_of_a_model(settings: Settings, run: RunDir, tmp_path: Path, gpus: int) -> None:
    """A model that is a folder is bound, and served under the name that was asked for."""
    (tmp_path / "model").mkdir()
    settings["JUDGE_MODEL"] = str(tmp_path / "model")
    assert f"{tmp_path}/model:{tmp_path}/model:ro" in binds(described(settings, run)["judge"])


def test_model_of_a_hub(settings: Settings, run: RunDir, tmp_path: Path, gpus: int) -> None:
    """Every target of a model's links is bound, because the files are in another directory of the hub's cache."""
    cache, other = tmp_path / "hub/models--me--small", tmp_path / "other"
    snapshot = cache / "snapshots/1"
    for folder in (cache / "blobs", snapshot / "1_Pooling", other):
        folder.mkdir(parents=True)
    (cache / "blobs/abc").touch()
    (other / "def").touch()
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    (snapshot / "1_Pooling/config.json").symlink_to("../../../blobs/abc")
    (snapshot / "tokenizer.json").symlink_to("../../blobs/linked")
    (cache / "blobs/linked").symlink_to(other / "def")
    (snapshot / "gone.json").symlink_to("../../blobs/gone")
    (snapshot / "same.json").symlink_to("tokenizer.json")
    (tmp_path / "model").symlink_to(snapshot)
    settings["JUDGE_MODEL"] = settings["EMBEDDING_MODEL"] = str(tmp_path / "model")
    for server in ("judge", "embedding"):
        program = described(settings, run)[server]
        found = {bind for bind in binds(program) if bind.startswith((str(tmp_path / "hub"), str(other)))}
        assert found == {f"{folder}:{folder}:ro" for folder in (snapshot, cache / "blobs", other)}
        assert str(snapshot) in program.command


def test_files_of_a_judge(settings: Settings, run: RunDir, tmp_path: Path, gpus: int) -> None:
    """Files and folders that flags of vLLM name are bound, also within JSON, and by a path from the tree on."""
    (tmp_path / "draft").mkdir()
    (tmp_path / "a.jinja").touch()
    settings["JUDGE_VLLM_ARGS"] = (
        f"--chat-template={tmp_path}/a.jinja --reasoning-parser qwen3 --config pyproject.toml "
        f"""--speculative-config '{{"model": "{tmp_path}/draft"}}' --tool-parser-plugin /no/such.py"""
    )
    judge = described(settings, run)["judge"]
    assert {f"{path}:{path}:ro" for path in (tmp_path / "draft", tmp_path / "a.jinja", ROOT / "pyproject.toml")} <= {
        *binds(judge)
    }
    assert not any("/no" in bind for bind in binds(judge))
    command = [*judge.command]
    assert command[command.index("--config") + 1] == str(ROOT / "pyproject.toml")
    assert command[command.index("--reasoning-parser") + 1] == "qwen3"


def test_port_of_metrics(settings: Settings, run: RunDir, gpus: int) -> None:
    """The embedding server takes no port beside its own that nobody has looked at."""
    command = [*described(settings, run)["embedding"].command]
    assert command[command.index("--prometheus-port") + 1] == "0"


def test_users_files(settings: Settings, run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a user's file is bound under its own path; of a file in the home itself, that file alone."""
    home = tmp_path / "home"
    mine = home / "project/mine.py"
    mine.parent.mkdir(parents=True)
    mine.touch()
    (home / "golden.jsonl").write_text("")
    monkeypatch.setenv("HOME", str(home))
    settings |= {"REWARD_FUNCTIONS": str(mine), "DATASET_PATH": str(home / "golden.jsonl")}
    found = binds(described(settings, run)["rules"])
    assert f"{mine.parent}:{mine.parent}:ro" in found
    assert f"{home}/golden.jsonl:{home}/golden.jsonl:ro" in found
    assert not any(bind.startswith(f"{home}:") for bind in found)


def test_no_image(settings: Settings, run: RunDir, tmp_path: Path) -> None:
    """A model server without its image is left out, another service is an error; both name the file and the remedy."""
    for image in tmp_path.glob("*.sif"):
        image.unlink()
    assert "make sif t=judge" in unsupported_reason(JUDGE, settings)
    with pytest.raises(StackError, match=r"redis.sif is missing — make sif t=redis"):
        described(settings, run)


def test_judges_take_all_gpus(settings: Settings, run: RunDir, gpus: int) -> None:
    """Where judges take all GPUs the embedding server's image is that for processors; without it a line says which."""
    (Path(settings["SIF_DIR"]) / "embedding-cpu.sif").unlink()
    said = unsupported_reason(EMBEDDING, settings, [JUDGE, EMBEDDING])
    assert [bool(said), "no GPU is left for it" in said] == [gpus < 2, gpus == 1]
    settings["JUDGE"] = "off"
    assert bool(unsupported_reason(EMBEDDING, settings, [JUDGE, EMBEDDING])) == (gpus == 0)


def test_path_that_cannot_be_bound(settings: Settings, run: RunDir, tmp_path: Path) -> None:
    """A path with a colon or a comma, which would bind something else, is refused."""
    (tmp_path / "a,b").mkdir()
    (tmp_path / "a,b/mine.py").touch()
    settings["REWARD_FUNCTIONS"] = str(tmp_path / "a,b/mine.py")
    with pytest.raises(StackError, match="cannot bind .*a,b: the path holds one of"):
        described(settings, run)
