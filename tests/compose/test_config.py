"""The compose files: what is published, what each service may do, where its values and its secrets come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.stack import compose_files, settings
from services.stack.rundir import ROOT
from services.stack.services_table import SERVICES
from services.stack.settings import read_dotenv
from services.stack.settings_table import read_by
from services.up.native.programs import SETTINGS_BY_SERVICE
from tests.compose.config import COMMON, FILES, config, services
from tests.compose.keys import PASSWORD
from tests.support.table import Table

VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)")
DOCKERFILE = (ROOT / "services/rules/Dockerfile").read_text()
COMBINATIONS = [FILES[:1], (FILES[0], "compose.gpu.yaml"), FILES]
SECRETS = {name for name in settings.SECRETS if name != "GRAFANA_ADMIN_PASSWORD"}
"""Those that clients send or the reward server does; Grafana's password guards nothing of the service."""
UNNEEDED = {"PROMETHEUS_MULTIPROC_DIR", "REWARD_SOCKET", *settings.SECRETS}
"""Of what the native reward server is given: not a setting, of local processes alone, or a file here."""

pytestmark = pytest.mark.usefixtures("needs_compose")


def written() -> dict[str, str]:
    """The text of each compose file, comments left out."""
    texts = {file: (ROOT / file).read_text() for file in (*FILES, COMMON)}
    return {file: re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE) for file, text in texts.items()}


def test_published_ports() -> None:
    """Only the gateway publishes ports: its four, on BIND_ADDRESS."""
    published = {name: service["ports"] for name, service in services().items() if service.get("ports")}
    assert published.keys() == {"gateway"}
    assert {(port["published"], port["target"]) for port in published["gateway"]} == {
        ("6000", 6000),
        ("8600", 8600),
        ("8000", 8000),
        ("8080", 8080),
    }
    moved = services(BIND_ADDRESS="10.0.0.7")["gateway"]["ports"]
    assert {port["host_ip"] for port in published["gateway"]} == {"127.0.0.1"}
    assert {port["host_ip"] for port in moved} == {"10.0.0.7"}


@pytest.mark.parametrize("files", COMBINATIONS, ids=len)
def test_every_service_is_confined(files: tuple[str, ...], secrets: Path) -> None:
    """No service has root's rights or can gain any, or writes to its root; the judge's image alone needs more."""
    for name, service in services(*files, RUN_DIR=str(secrets)).items():
        assert (name, service["cap_drop"]) == (name, ["ALL"])
        assert (name, service["security_opt"]) == (name, ["no-new-privileges:true"])
        assert not service.get("privileged") and service["pids_limit"] > 0 and not service.get("network_mode")
        if name == "judge":
            assert service.get("cap_add", []) in (["SYS_NICE"], [])
            continue
        assert (name, service["read_only"], service.get("cap_add")) == (name, True, None)
        user = service.get("user") or re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)[-1]
        assert (name, user.partition(":")[0] in ("", "0", "root")) == (name, False)


@pytest.mark.parametrize("files", COMBINATIONS, ids=len)
def test_every_service_is_kept_up(files: tuple[str, ...], secrets: Path) -> None:
    """Every service has a health check, is restarted whenever it ends, and its log is bounded."""
    for name, service in services(*files, RUN_DIR=str(secrets)).items():
        assert (name, service["restart"], len(service["healthcheck"]["test"]) > 1) == (name, "unless-stopped", True)
        assert (name, service["logging"]["options"].keys()) == (name, {"max-size", "max-file"})


def test_loading_is_not_ill() -> None:
    """A judge that loads its model for half an hour is not unhealthy, and what depends on others waits for health."""
    found = services(MODEL_UP_TIMEOUT="1800")
    assert [found[name]["healthcheck"]["start_period"] for name in ("judge", "embedding")] == ["30m0s"] * 2
    awaited = [wait for service in found.values() for wait in service.get("depends_on", {}).values()]
    assert awaited and {wait["condition"] for wait in awaited} == {"service_healthy"}
    assert not {"judge", "embedding"} & {name for service in found.values() for name in service.get("depends_on", {})}


def test_gpus() -> None:
    """On GPUs one judge has all of its GPUs, with vLLM's own replicas, and the embedding server has another."""
    found = services("compose.yaml", "compose.gpu.yaml", JUDGE_REPLICAS="2", JUDGE_GPUS="0,1", EMBEDDING_GPU="2")
    devices = {
        name: found[name]["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]
        for name in ("judge", "embedding")
    }
    assert devices == {"judge": ["0,1"], "embedding": ["2"]}
    command = found["judge"]["command"]
    assert (found["judge"]["scale"], command[command.index("--data-parallel-size") + 1]) == (1, "2")
    flags = {mount["target"]: Path(mount["source"]).name for mount in found["judge"]["volumes"]}
    assert flags["/etc/vllm.yaml"] == "vllm-gpu.yaml"


@pytest.mark.parametrize("spelt", ["no_proxy", "NO_PROXY"])
def test_what_is_asked_past_a_proxy(monkeypatch: pytest.MonkeyPatch, spelt: str) -> None:
    """The reward server asks the gateway past any proxy, and the hosts of the user's list, however that is spelt."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = services(**{spelt: "judge.example"})
    for service in ("rules", "worker"):
        given = found[service]["environment"]
        assert given["no_proxy"] == given["NO_PROXY"] == "gateway,judge.example"


def test_redis_is_out_of_reach() -> None:
    """Cache and queue are in a network without a way out, which the gateway and the model servers are not in."""
    members = {name: set(service["networks"]) for name, service in services().items()}
    assert members["cache"] == members["queue"] == {"data"}
    assert members["gateway"] == members["judge"] == members["embedding"] == {"default"}


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_key_in_the_environment_has_no_effect(name: str) -> None:
    """A key of the shell reaches no container: keys are files."""
    done = config(**{name: PASSWORD})
    assert (done.returncode, done.stdout) == (0, config().stdout)


def test_no_secret_is_a_variable(secrets: Path) -> None:
    """With every key in its file, no service's variables or command lines hold one."""
    done = config(*FILES, RUN_DIR=str(secrets))
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout
    for service in services(*FILES, RUN_DIR=str(secrets)).values():
        assert not SECRETS & {name for name, value in (service.get("environment") or {}).items() if value}


def test_images_are_settings() -> None:
    """No compose file names an image itself, and every image of `.env` stands in one or is a launcher's."""
    named = [image for text in written().values() for image in re.findall(r"\bimage: (.*)", text)]
    assert named and all(VARIABLE.fullmatch(image.rstrip("}")) for image in named)
    images = {name for name in read_dotenv(ROOT / ".env") if name.endswith("_IMAGE")} - {"TEI_IMAGE"}
    assert images <= {name for text in written().values() for name in VARIABLE.findall(text)}


def test_variables_are_settings() -> None:
    """Every variable of the compose files is a setting, but for NO_PROXY; every setting of Compose stands in one."""
    used = {name for text in written().values() for name in VARIABLE.findall(text)} - {"NO_PROXY"}
    assert used <= set(settings.SETTINGS)
    # Compose itself reads COMPOSE_PROFILES.
    assert {*read_by("compose")} - {"COMPOSE_PROFILES"} <= used


@pytest.mark.parametrize("name", ["rules", "worker"])
def test_settings_reach_the_reward_server(name: str) -> None:
    """The reward server and the worker are given every setting that the native ones are, with the values of `.env`."""
    wanted = set(SETTINGS_BY_SERVICE["rules"]) - UNNEEDED
    found = services()[name]["environment"]
    assert not wanted - {variable.removesuffix("_FILE") for variable in found}
    shipped = read_dotenv(ROOT / ".env")
    same = wanted & shipped.keys() - {"LLM_JUDGE_SERVER_URL", "EMBEDDING_SERVER_URL"}
    assert {key: found[key] for key in same} == {key: shipped[key] for key in same}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JUDGE_MODEL", "org/model"),
        ("JUDGE_REPLICAS", "3"),
        ("JUDGE_DTYPE", "bfloat16"),
        ("JUDGE_MAX_MODEL_LEN", "4096"),
        ("JUDGE_VLLM_ARGS", "--max-num-seqs 64"),
        ("VLLM_CPU_KVCACHE_SPACE", "4"),
    ],
)
def test_judges_settings(name: str, value: str) -> None:
    """A setting of the judge changes the judge and nothing else, so that Compose leaves the rest as it runs."""
    before, after = services(), services(**{name: value})
    assert {service for service in before if before[service] != after[service]} == {"judge"}


def test_where_the_judge_is() -> None:
    """The reward server asks the stack's own judge, an external one if that is named, or none."""

    def url(**given: str) -> str:
        return str(services(**given)["rules"]["environment"]["LLM_JUDGE_SERVER_URL"])

    assert url() == "http://gateway:8000"
    assert url(LLM_JUDGE_SERVER_URL="http://node-7:8000") == "http://node-7:8000"
    assert url(STACK_JUDGE_URL="") == ""


@pytest.mark.parametrize("files", [FILES[:1], FILES[:2]], ids=len)
def test_services_are_the_tables(files: tuple[str, ...], table: Table) -> None:
    """Each service has the command, probe, memory and stop of its row, with the settings filled in."""
    own = {"JUDGE_DTYPE": "bfloat16", "JUDGE_MAX_MODEL_LEN": "4096", "JUDGE_VLLM_ARGS": "--seed 7"}
    own |= {"DRAIN_TIMEOUT": "17", "COMPOSE_PROFILES": "judge,reward-model,embedding,code"}
    own |= {"REWARD_MODEL_ID": "org/rm", "REWARD_MODEL_VLLM_ARGS": "--convert classify"}
    values, found = settings.load(ROOT, own), services(*files, **own)
    for name, row in SERVICES.items():
        with table.case(name):
            service = found[name]
            words = row.arguments(values, "gpu" if len(files) > 1 else "cpu")
            fixed = [word for word in row.command if "{" not in word][len(compose_files.ENTRY_POINT.get(name, ())) :]
            assert {*fixed, *words, *values.get(row.more_options, "").split()} <= {*service["command"]}
            assert service["stop_signal"] == f"SIG{row.stop_signal}"
            assert duration(service["stop_grace_period"]) == row.stop_grace(values)
            assert duration(service["healthcheck"]["start_period"]) == values.number(row.startup_timeout)
            test = [word.replace("$$", "$") for word in service["healthcheck"]["test"]]  # as Compose escapes it
            assert [*row.probe.command] == test[3:] if row.probe.command else test[-1].endswith(row.probe.ready)
            assert int(service.get("mem_limit", 0)) == (row.memory.bytes(values) if row.memory else 0)


def duration(text: str) -> int:
    """The seconds of a duration as Compose writes it, such as `1m57s`."""
    return sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([hms])", text))


def test_gateway_has_its_values() -> None:
    """Every variable of the templates that the gateway includes is among its own."""
    given = services()["gateway"]["environment"]
    included = re.findall(r"include (\S+);", given["SERVICES"])
    names = ["nginx.conf", "common.conf", "judge-least_conn.conf", "judge-affinity.conf", *included]
    text = "".join((ROOT / "helm/rewardstack/files/gateway" / f"{name}.template").read_text() for name in names)
    assert set(re.findall(r"\$\{([A-Z_]+)\}", text)) <= given.keys()
