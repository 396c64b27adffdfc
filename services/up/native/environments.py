"""What each program is given of the settings, the secrets and the files, and nothing of another's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from services.gateway.tls import TRUST
from services.models.environment import requirements_digest
from services.stack.given import GIVEN_TO, HUB, from_environment
from services.stack.rundir import ROOT
from services.stack.secrets import Secrets
from services.stack.settings import SECRETS, SETTINGS, USERS_FILES, Settings
from services.up import named_judges
from services.up.native.programs import digest

SCORING = (ROOT / "client", ROOT / "verifier", ROOT / "services/rules/rewardstack_rules")
EMBEDDING = (ROOT / "services/embedding",)
PACKAGES = ROOT / "constraints.txt"
KEYS = {
    "judge": {"VLLM_API_KEY": "LLM_JUDGE_SERVER_API_KEY", "HF_TOKEN": "HF_TOKEN"},
    "embedding": {"API_KEY": "EMBEDDING_SERVER_API_KEY", "HF_TOKEN": "HF_TOKEN"},
}
"""The secrets of the model servers, by the name under which they read them."""


class Environments:
    """Hands out variables, files of secrets and versions.

    Args:
        values: of every variable that a program may be given.
        hidden: those of them that are secrets.
        settings: of the stack.
        secrets: takes the hidden ones up.
    """

    def __init__(
        self, values: Mapping[str, str], hidden: Mapping[str, str], settings: Settings, secrets: Secrets
    ) -> None:
        keys = named_judges.keys(settings)
        self._judges = {name: secrets.add(named_judges.key_file(name), text) for name, text in keys.items()}
        self._values, self._secrets = values, secrets
        named = SETTINGS["REWARD_FUNCTIONS_ENV"].read(values["REWARD_FUNCTIONS_ENV"])
        self._functions = [name for name in named if name not in SECRETS]
        self._hidden = {name: secrets.add(name.lower(), text) for name, text in hidden.items() if text}
        self._users = [path for name in USERS_FILES for path in settings.files(name)]
        routes = settings.files("REWARDSTACK_ROUTES")
        self._users += [file.parent / name for file in routes for name in named_judges.templates(file)]
        self._users += map(Path, filter(None, [values[TRUST]]))

    def scoring(self, service: str) -> tuple[dict[str, str], dict[str, str]]:
        """Variables and versions of the reward server or a worker; secrets as names of files."""
        names = [name for name in (*GIVEN_TO[service], TRUST) if self._values.get(name) and name not in self._hidden]
        own = [name for name in GIVEN_TO[service] if name in self._hidden]
        variables = {name: self._values[name] for name in names}
        variables |= {f"{name}_FILE": str(self._hidden[name]) for name in own}
        variables |= {f"{name}_FILE": str(file) for name, file in self._judges.items()}
        variables |= from_environment(*self._functions)
        code = {folder.name: _code([folder]) for folder in SCORING}
        files = {str(path): _contents([path]) for path in (*self._users, PACKAGES)}
        keys = {name: self._secrets.digest(file.name) for name, file in self._judges.items()}
        return variables, {**code, **files, **keys, **self._versions(own)}

    def model_server(self, service: str) -> tuple[dict[str, str], dict[str, Path], dict[str, str]]:
        """Variables, files of secrets and versions of the judge or the embedding server."""
        keys = {variable: name for variable, name in KEYS[service].items() if name in self._hidden}
        code = {"its code": _code(EMBEDDING)} if service == "embedding" else {}
        versions = {"its packages": requirements_digest(), **code, **self._versions(keys.values())}
        hub = from_environment(*(name for name in HUB if name not in keys))
        return hub, {variable: self._hidden[name] for variable, name in keys.items()}, versions

    def _versions(self, secrets: Iterable[str]) -> dict[str, str]:
        return {name: self._secrets.digest(name.lower()) for name in secrets}


def _code(folders: Iterable[Path]) -> str:
    return _contents(path for folder in folders for path in sorted(folder.rglob("*.py")))


def _contents(files: Iterable[Path]) -> str:
    return digest(part for path in files for part in (str(path), hashlib.sha256(path.read_bytes()).hexdigest()))
