"""What values make of the chart: judges by name, registries, addresses of IPv6, notes, and the page about them."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rewardstack.client import route_table
from rewardstack.settings import Settings
from services.stack.chart import render_readme
from tests.helm.rendering import CHART, Refused, Rendering, is_tool, render
from tests.support.table import Table

BASE: dict[str, Any] = {"rules": {"image": "rewardstack:test"}}
SMALL = {
    "model": "Qwen/Qwen3-4B",
    "route": {"template": "Is it right? {CANDIDATE_SOLUTION}", "options": {"max_new_tokens": 4096}},
}
KEYS = {"reward_server_api_keys": "a-key-of-the-tests"}
EXTRA = [{"name": "VLLM_CPU_KVCACHE_SPACE", "value": "8"}, {"name": "HF_HUB_OFFLINE", "value": "1"}]
ON_CPUS = {"judge": {"device": "cpu", "extraEnv": EXTRA}, "embedding": {"device": "cpu"}}
NUMBERS = {
    "settings": {"MAX_BODY_BYTES": 134217728, "VERIFY_TIMEOUT": 12.5, "VERIFY_PROCESSES": 3},
    "judge": {"user": 1000650000, "extraArgs": ["--max-num-batched-tokens", 2000000, "--swap-space", 0.5]},
}

REFUSED = json.loads((Path(__file__).parent / "cases/refused.json").read_text(encoding="utf-8"))

ON_ONE_LINE = {
    *(
        f"{service}.resources"
        for service in ("rules", "worker", "sandbox", "gateway", "judge", "embedding", "cache", "queue")
    ),
    *(f"{service}.{device}" for service in ("judge", "embedding") for device in ("gpu", "cpu")),
    "judges.default",
    "judge.gpu",
    "monitoring.dashboardLabels",
    "monitoring.namespace",
}

Rendered = Callable[[dict[str, Any]], Rendering]


@pytest.fixture
def rendered(needs_helm: None) -> Rendered:
    """Render the chart with some values and an image of the reward server."""
    return lambda values: render(yaml.safe_dump({**BASE, **values}))


@pytest.fixture
def needs_notes(needs_helm: None) -> None:
    """Notes, which a `helm` binary prints only when it installs into a cluster."""
    if not is_tool():
        pytest.skip("helm prints no notes without a cluster")


def test_judges_are_routes(rendered: Rendered, tmp_path: Path) -> None:
    """A named judge is a route with its values for every service that scores, beside the user's own routes."""
    found = rendered(
        {
            "judges": {"default": {}, "small": SMALL},
            "files": {"source": {"configMap": {"name": "rewards"}}, "routes": "own.toml"},
        }
    )
    settings = found.one("ConfigMap", "settings")["data"]
    assert settings["REWARDSTACK_ROUTES"] == "/srv/files/own.toml:/srv/judges/routes.json"
    for service in ("rules", "worker"):
        (container,) = found.one("Deployment", service)["spec"]["template"]["spec"]["containers"]
        assert "/srv/judges" in [mount["mountPath"] for mount in container["volumeMounts"]], service
    files = [tmp_path / "own.toml", tmp_path / "routes.json"]
    files[0].write_text('[routes]\nboth.sum = ["small", "llm_judge_remote"]\n')
    files[1].write_text(found.one("ConfigMap", "routes")["data"]["routes.json"])
    routes = route_table(Settings.from_env({"REWARDSTACK_ROUTES": ":".join(map(str, files))}))
    judge = routes.judges["small"]
    assert (judge.model, judge.base_url) == (SMALL["model"], ())
    assert (judge.template, judge.options) == ("Is it right? {CANDIDATE_SOLUTION}", {"max_new_tokens": 4096})


def test_judges_have_paths(rendered: Rendered) -> None:
    """The gateway leads a judge's name to the servers that have its model."""
    found = rendered({"judges": {"default": {}, "small": SMALL}})
    gateway = found.one("ConfigMap", "gateway-settings")["data"]
    assert gateway["MODEL_PATHS"] == "/judges/small judge-small;"
    assert "server r-judge-small.default.svc.cluster.local:8000 resolve" in gateway["MODEL_UPSTREAMS"]
    (container,) = found.one("Deployment", "judge-small")["spec"]["template"]["spec"]["containers"]
    assert SMALL["model"] in container["command"]


def test_reward_model(rendered: Rendered) -> None:
    """A reward model has a path at the judge's port, with the judge's values but its own model, flags and GPUs."""
    judge = {"device": "cpu", "gpus": 4, "extraArgs": ["--seed", "7"], "image": "own:1"}
    values = {"judge": judge, "judges": {"default": {"enabled": False}}, "rewardModel": {"model": "org/rm"}}
    found = rendered({**values, "keys": {"values": {"llm_judge_server_api_key": "k" * 16}}})
    gateway = found.one("ConfigMap", "gateway-settings")["data"]
    assert gateway["MODEL_PATHS"] == "/reward_models/reward_model reward-model;"
    assert "server r-reward-model.default.svc.cluster.local:8000 resolve" in gateway["MODEL_UPSTREAMS"]
    (container,) = found.one("Deployment", "reward-model")["spec"]["template"]["spec"]["containers"]
    assert "org/rm --config /etc/rewardstack/vllm-cpu.yaml --runner pooling" in " ".join(container["command"])
    assert ("--seed" in container["command"], container["image"]) == (False, "own:1")
    url = "http://r-gateway.default.svc.cluster.local:8000/reward_models/reward_model"
    assert found.one("ConfigMap", "settings")["data"]["REWARD_MODEL_SERVER_URL"] == url
    for service in ("rules", "worker"):
        (container,) = found.one("Deployment", service)["spec"]["template"]["spec"]["containers"]
        [key] = [one["value"] for one in container["env"] if one["name"] == "REWARD_MODEL_SERVER_API_KEY_FILE"]
        assert key == "/run/secrets/rewardstack/llm_judge_server_api_key", service


def test_sandbox(rendered: Rendered) -> None:
    """Programs run in pods without keys that reach nothing; an external sandbox replaces them."""
    keys = {"keys": {"values": {"reward_server_api_keys": "k" * 16}}}
    found = rendered({"settings": {"CODE": "on", "CODE_TIMEOUT": 30}, "sandbox": {"replicas": 2}, **keys})
    url = "http://r-sandbox.default.svc.cluster.local:6000"
    assert found.one("ConfigMap", "settings")["data"]["CODE_SANDBOX_URL"] == url
    deployment = found.one("Deployment", "sandbox")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert (deployment["replicas"], variables["CODE"], variables["CODE_TIMEOUT"]) == (2, "on", "30")
    assert not {name for name in variables if name.endswith(("_FILE", "_URL"))} and "envFrom" not in container
    assert [mount["name"] for mount in container["volumeMounts"]] == ["tmp"]
    policy = found.one("NetworkPolicy", "sandbox")["spec"]
    assert (policy["policyTypes"], "egress" in policy) == (["Ingress", "Egress"], False)
    peers = [one["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for one in policy["ingress"][0]["from"]]
    assert peers == ["rules", "worker"]
    assert found.one("PodDisruptionBudget", "sandbox")
    urls = {"CODE_SANDBOX_URL": "http://sandbox.example:6000", "SANDBOX_FUSION_URL": "http://fusion.example:8080"}
    for settings in ({}, *({"CODE": "on", name: url} for name, url in urls.items())):
        names = [one["metadata"]["name"] for one in rendered({"settings": settings, **keys}).of("Deployment")]
        assert "r-sandbox" not in names


def test_key_of_the_sandbox(rendered: Rendered) -> None:
    """With a key the sandbox requires it, and reward server and workers send it; the sandbox sees no other key."""
    values = {"reward_server_api_keys": "k" * 16, "code_sandbox_api_key": "s" * 16}
    found = rendered({"settings": {"CODE": "on"}, "keys": {"values": values}})
    (container,) = found.one("Deployment", "sandbox")["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert variables["REWARD_SERVER_API_KEYS_FILE"] == "/run/secrets/rewardstack/code_sandbox_api_key"
    [volume] = [
        one
        for one in found.one("Deployment", "sandbox")["spec"]["template"]["spec"]["volumes"]
        if one["name"] == "keys"
    ]
    assert [one["key"] for one in volume["secret"]["items"]] == ["code_sandbox_api_key"]
    for service in ("rules", "worker"):
        (container,) = found.one("Deployment", service)["spec"]["template"]["spec"]["containers"]
        assert "CODE_SANDBOX_API_KEY_FILE" in {one["name"] for one in container["env"]}, service


def test_judges_beside_an_external_one(rendered: Rendered) -> None:
    """If the default judge is external, the chart's judges are still asked at its gateway."""
    judges = {"default": {"enabled": False}, "small": SMALL}
    external = {"LLM_JUDGE_SERVER_URL": "https://judge.example.com"}
    found = rendered({"judges": judges, "settings": external, "keys": {"values": {"llm_judge_server_api_key": "k"}}})
    (judge,) = json.loads(found.one("ConfigMap", "routes")["data"]["routes.json"])["judges"].values()
    assert judge["base_url"] == "http://r-gateway.default.svc.cluster.local:8000/judges/small"
    assert judge["api_key_env"] == "LLM_JUDGE_SERVER_API_KEY"


def test_judges_without_a_default_one(rendered: Rendered) -> None:
    """Nobody is told of a default judge that is not there, and those by name are asked at the gateway."""
    found = rendered({"judges": {"default": {"enabled": False}, "small": SMALL}})
    assert "LLM_JUDGE_SERVER_URL" not in found.one("ConfigMap", "settings")["data"]
    (judge,) = json.loads(found.one("ConfigMap", "routes")["data"]["routes.json"])["judges"].values()
    assert judge["base_url"] == "http://r-gateway.default.svc.cluster.local:8000/judges/small"


def test_what_of_a_judge_is_whole(rendered: Rendered) -> None:
    """A judge's own volume and node labels take the place of those of all judges: two volumes would be none."""
    common: dict[str, Any] = {
        "modelCache": {"persistentVolumeClaim": {"claimName": "m"}},
        "nodeSelector": {"gpu": "h100"},
    }
    small = {"device": "cpu", "modelCache": {"hostPath": {"path": "/m"}}, "nodeSelector": {}}
    found = rendered({"judge": common, "judges": {"default": {}, "small": small}})
    pods = {name: found.one("Deployment", name)["spec"]["template"]["spec"] for name in ("judge", "judge-small")}
    volumes = {name: next(one for one in pod["volumes"] if one["name"] == "models") for name, pod in pods.items()}
    assert volumes["judge"] == {"name": "models", **common["modelCache"]}
    assert volumes["judge-small"] == {"name": "models", "hostPath": {"path": "/m"}}
    assert (pods["judge"]["nodeSelector"], "nodeSelector" in pods["judge-small"]) == ({"gpu": "h100"}, False)


def test_large_numbers(rendered: Rendered) -> None:
    """Numbers in settings and lists of arguments are texts as programs read them, without an exponent."""
    found = rendered(NUMBERS)
    settings = found.one("ConfigMap", "settings")["data"]
    assert (settings["MAX_BODY_BYTES"], settings["VERIFY_TIMEOUT"]) == ("134217728", "12.5")
    assert found.one("ConfigMap", "gateway-settings")["data"]["MAX_BODY_BYTES"] == "134217728"
    pod = found.one("Deployment", "judge")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 1000650000
    assert pod["containers"][0]["command"][-3:] == ["2000000", "--swap-space", "0.5"]


def test_names_and_questions(rendered: Rendered) -> None:
    """Servers know their names in the cluster and those of the Ingress; a port asks for a key where there is one.

    The gateway's folder, which holds no bodies, has a size.
    """
    ingress = {"enabled": True, "hosts": {"rules": "rewards.example.org", "judge": ""}}
    found = rendered({"ingress": ingress, "keys": {"values": KEYS}, "settings": {"ALLOWED_HOSTS": ".own.example"}})
    given = found.one("ConfigMap", "gateway-settings")["data"]
    names = {".own.example", ".cluster.local", "r-gateway.default", "rewards.example.org"}
    assert {*given["ALLOWED_HOSTS"].split(",")} == names
    assert found.one("ConfigMap", "settings")["data"]["ALLOWED_HOSTS"] == given["ALLOWED_HOSTS"]
    asks = [given[f"{service}_AUTH_REQUEST_URI"] for service in ("RULES", "JUDGE", "EMBEDDING")]
    assert asks == ["/key", "off", "off"]
    volumes = found.one("Deployment", "gateway")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}} in volumes


def test_keys_that_a_pod_has(rendered: Rendered) -> None:
    """Keys are in a Secret and in no other object; each pod mounts the keys that its program reads, and no others."""
    keys = {name: f"{name}-to-find" for name in ("reward_server_api_keys", "llm_judge_server_api_key", "hf_token")}
    found = rendered({"keys": {"values": keys}})
    shown = yaml.safe_dump([one for one in found.objects if one["kind"] != "Secret"])
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in keys.items()}
    assert not any(text in shown for text in (*keys.values(), *encoded.values()))
    data = found.one("Secret", "keys")["data"]
    assert {name: data[name] for name in encoded} == encoded
    mounted = {}
    for one in found.of("Deployment"):
        volumes = [volume for volume in one["spec"]["template"]["spec"]["volumes"] if volume["name"] == "keys"]
        mounted[one["metadata"]["name"]] = {item["key"] for volume in volumes for item in volume["secret"]["items"]}
    assert mounted == {
        "r-gateway": set(),
        "r-cache": set(),
        "r-rules": {"reward_server_api_keys", "llm_judge_server_api_key"},
        "r-worker": {"llm_judge_server_api_key"},
        "r-judge": {"llm_judge_server_api_key", "hf_token"},
        "r-embedding": {"hf_token"},
    }


def test_files_of_an_image(rendered: Rendered) -> None:
    """Files of an image are copied before the program starts, by the image's own program, from the registry of all."""
    source = {"image": {"reference": "example.com/rewards:1", "path": "/rewards/"}}
    found = rendered({"registry": "r.example.com", "files": {"source": source, "functions": ["mine.py"]}})
    for name in ("rules", "worker"):
        pod = found.one("Deployment", name)["spec"]["template"]["spec"]
        (copies,) = pod["initContainers"]
        assert (copies["image"], copies["command"]) == (
            "r.example.com/rewards:1",
            ["cp", "-R", "/rewards/.", "/srv/files"],
        )
        assert {"name": "files", "emptyDir": {}} in pod["volumes"]
    assert found.one("ConfigMap", "settings")["data"]["REWARD_FUNCTIONS"] == "/srv/files/mine.py"


def test_processes_that_verify(rendered: Rendered) -> None:
    """A reward server verifies with the processors that are reserved for it, not with all of its node's."""
    (container,) = rendered({}).one("Deployment", "rules")["spec"]["template"]["spec"]["containers"]
    assert {"name": "VERIFY_PROCESSES", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}} in container[
        "env"
    ]
    (container,) = rendered(NUMBERS).one("Deployment", "rules")["spec"]["template"]["spec"]["containers"]
    assert "VERIFY_PROCESSES" not in {one["name"] for one in container.get("env", ())}


def test_no_judge_by_name(rendered: Rendered) -> None:
    """The default judge needs no file of routes."""
    assert "REWARDSTACK_ROUTES" not in rendered({}).one("ConfigMap", "settings")["data"]


def images(rendering: Rendering) -> dict[str, str]:
    """The image of each Deployment and StatefulSet, by its name without the release's."""
    return {
        one["metadata"]["name"].removeprefix("r-"): one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in rendering.of("Deployment", "StatefulSet")
    }


def test_registry(rendered: Rendered) -> None:
    """A registry takes the place of every image's own, and is not put before itself; pods have its Secrets."""
    own = "registry.example.com:5000/team"
    values = {"rules": {"image": f"{own}/rewardstack:test"}, "imagePullSecrets": [{"name": "registry"}]}
    found = rendered({**values, "registry": own})
    assert images(found)["rules"] == f"{own}/rewardstack:test"
    assert images(found)["embedding"].startswith(f"{own}/huggingface/text-embeddings-inference:")
    assert images(found)["gateway"].startswith(f"{own}/nginx:")
    assert {image.rpartition("/")[0].removesuffix("/huggingface") for image in images(found).values()} <= {
        own,
        f"{own}/vllm",
    }
    for one in found.of("Deployment", "StatefulSet"):
        assert one["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_ipv6(rendered: Rendered) -> None:
    """In a cluster with IPv6 every server listens on it as well, and the gateway asks for such addresses."""
    found = rendered({"ipv6": True})
    gateway = found.one("ConfigMap", "gateway-settings")["data"]
    assert (gateway["LISTEN_RULES"], gateway["DNS_IPV6"]) == ("[::]:6000 ipv6only=off", "on")
    assert found.one("ConfigMap", "settings")["data"]["REWARD_HOST"] == "::"
    for service, flag in (("judge", "--host"), ("embedding", "--hostname")):
        (container,) = found.one("Deployment", service)["spec"]["template"]["spec"]["containers"]
        assert container["command"][container["command"].index(flag) + 1] == "::", service


def test_variables_of_a_model_server(rendered: Rendered) -> None:
    """A judge has each variable once, with the value of `extraEnv` if that names it.

    On the CPU it is bound to no cores, because two judges of one node would choose the same; compiled code is not on
    the volume of models, which replicas share.
    """
    found = rendered(ON_CPUS)
    (container,) = found.one("Deployment", "judge")["spec"]["template"]["spec"]["containers"]
    own = {
        "HF_HOME": "/cache/huggingface",
        "HOME": "/tmp",
        "MODEL_CACHE": "/cache",
        "USER": "vllm",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "XDG_CACHE_HOME": "/tmp/cache",
    }
    threads = {"name": "OMP_NUM_THREADS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}}
    assert container["env"] == [*({"name": name, "value": value} for name, value in own.items()), threads, *EXTRA]


@pytest.mark.parametrize(
    ("values", "judge", "embedding"),
    [
        ({}, ["vllm", "serve"], ["/entrypoint.sh"]),
        (ON_CPUS, ["vllm", "serve"], ["text-embeddings-router"]),
        ({"judge": {"gpu": {"program": ["/start"]}}}, ["/start"], ["/entrypoint.sh"]),
    ],
)
def test_programs_of_the_images(
    rendered: Rendered, values: dict[str, Any], judge: list[str], embedding: list[str]
) -> None:
    """A model server is started by what its image has: that of embeddings on GPUs picks the program for the GPU."""
    found = rendered(values)
    for service, program in (("judge", judge), ("embedding", embedding)):
        (container,) = found.one("Deployment", service)["spec"]["template"]["spec"]["containers"]
        assert container["command"][2 : 2 + len(program)] == program, service


@pytest.mark.parametrize(
    ("values", "seen", "unseen"),
    [
        ({}, ["REWARD_SERVER_URL", "LLM_JUDGE_SERVER_URL", "EMBEDDING_SERVER_URL", "port-forward"], ["KEY", "ROUTES"]),
        ({"embedding": {"enabled": False}}, ["LLM_JUDGE_SERVER_URL"], ["EMBEDDING", "8080"]),
        ({"judge": {"enabled": False}}, ["EMBEDDING_SERVER_URL"], ["JUDGE", "8000"]),
        ({"judges": {"default": {}, "small": SMALL}}, ["get configmap r-routes", "REWARDSTACK_ROUTES"], ["API_KEY"]),
        ({"keys": {"values": KEYS}}, ['REWARD_SERVER_API_KEY="$(kubectl'], ["JUDGE_SERVER_API"]),
        ({"gateway": {"service": {"type": "LoadBalancer"}}}, ["get service r-gateway", "without a key"], ["forward"]),
        ({"judge": {"scaling": {"by": "keda"}}}, ["scaling of judge needs metrics"], ["without a key"]),
        ({"judges": {"default": {"enabled": False}, "small": SMALL}}, [], ["LLM_JUDGE_SERVER_URL"]),
    ],
)  # fmt: skip
def test_notes(
    needs_notes: None, rendered: Rendered, values: dict[str, Any], seen: list[str], unseen: list[str]
) -> None:
    """The notes name what is installed, and nothing else, in at most 15 lines."""
    notes = rendered(values).notes.partition("NOTES:\n")[2]
    assert [part for part in seen if part not in notes] == []
    assert [part for part in unseen if part in notes] == []
    assert "..." not in notes
    assert len(notes.strip().splitlines()) <= 15


def test_refused_by_schema(table: Table) -> None:
    """The schema refuses an unknown name and a value of another type, and names it."""
    for case in refused("schema"):
        with table.case(case["values"]):
            errors = schema_errors(yaml.safe_load(case["values"]))
            assert [error for error in errors if case["named"] in error] != [], errors


def test_refused_by_templates(rendered: Rendered, table: Table) -> None:
    """The templates refuse what the schema cannot, such as half of a pair, and name it."""
    for case in refused("templates"):
        with table.case(case["values"]):
            values = yaml.safe_load(case["values"])
            assert schema_errors(values) == []
            with pytest.raises(Refused, match=re.escape(case["named"])):
                rendered(values)


def refused(by: str) -> list[dict[str, str]]:
    """The cases that the schema refuses, or the templates."""
    return [case for case in REFUSED if case["by"] == by]


def test_helm_applies_the_schema(rendered: Rendered) -> None:
    """Helm renders nothing if the schema refuses a name or a value."""
    with pytest.raises(Refused, match="replica"):
        rendered({"rules": {**BASE["rules"], "replica": 3}})
    with pytest.raises(Refused, match="/gateway/resolver"):
        rendered({"gateway": {"resolver": "fd00::10"}})


def schema_errors(values: dict[str, Any]) -> list[str]:
    """Path and message of each error of the chart's schema in these values, over its defaults."""
    schema, defaults = schema_and_defaults()
    errors = jsonschema.Draft7Validator(schema).iter_errors(merged(merged(defaults, BASE), values))
    return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


@functools.cache
def schema_and_defaults() -> tuple[dict[str, Any], dict[str, Any]]:
    """The chart's schema and its values."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return schema, yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


def merged(values: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Values as Helm puts them over others: maps are merged, null takes a value away."""
    both = {
        name: merged(values[name], value) if isinstance(value, dict) and isinstance(values.get(name), dict) else value
        for name, value in over.items()
    }
    return {name: value for name, value in {**values, **both}.items() if value is not None}


def test_page() -> None:
    """A value without a comment means what the last one of its name does; a name without any is refused."""
    text = "# About nothing.\n\n# Of all.\nimage: a\n# A part.\npart:\n  image: b\n  # How | many.\n  count: 2\n"
    shown = render_readme(text)
    assert "| `part.image` | `b` | Of all. |" in shown
    assert "## part\n\nA part.\n" in shown
    assert r"| `part.count` | `2` | How \| many. |" in shown
    with pytest.raises(ValueError, match=r"part\.other has no comment"):
        render_readme(f"{text}  other: 1\n")


def test_every_value_is_on_the_page() -> None:
    """The chart's page has a row for each value, down to those that are one map."""
    shown = (CHART / "README.md").read_text(encoding="utf-8")
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    missing = [name for name in names(values) if f"| `{name}` |" not in shown]
    assert missing == []


def names(values: dict[str, Any], before: str = "") -> Iterator[str]:
    """Of all values, by their paths; a map that stands on one line of the page is one."""
    for name, value in values.items():
        if isinstance(value, dict) and value and f"{before}{name}" not in ON_ONE_LINE:
            yield from names(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"
