"""TEI's flags, and the variables that stand for them."""

from __future__ import annotations

import pytest

from services.embedding.tei_python import settings


def test_defaults_are_those_of_tei() -> None:
    """Without flags and variables the limits are TEI's."""
    parsed = settings.parse([], {})
    assert (512, 16384, None, 32, True, 2_000_000) == (
        parsed.max_concurrent_requests,
        parsed.max_batch_tokens,
        parsed.max_batch_requests,
        parsed.max_client_batch_size,
        parsed.auto_truncate,
        parsed.payload_limit,
    )


@pytest.mark.parametrize("flag", ["--max-batch-tokens", "--max_batch_tokens"])
def test_flags_have_two_spellings(flag: str) -> None:
    """Hyphens and underscores mean the same."""
    assert settings.parse([flag, "99"], {}).max_batch_tokens == 99


def test_a_flag_beats_its_variable() -> None:
    """A variable counts where no flag is given; an empty one does not count."""
    environ = {"MODEL_ID": "a", "PORT": "1234", "AUTO_TRUNCATE": "false", "API_KEY": ""}
    parsed = settings.parse(["--port", "4321"], environ)
    assert ("a", 4321, False, None) == (parsed.model_id, parsed.port, parsed.auto_truncate, parsed.api_key)


def test_a_host_name_in_the_environment_is_not_listened_on() -> None:
    """Shells set HOSTNAME to the machine's name: only the flag counts."""
    assert settings.parse([], {"HOSTNAME": "node-17"}).hostname == "0.0.0.0"
    assert settings.parse(["--hostname", "127.0.0.1"], {"HOSTNAME": "node-17"}).hostname == "127.0.0.1"


@pytest.mark.parametrize(
    ("given", "meant"), [([], True), (["--auto-truncate"], True), (["--auto-truncate=false"], False)]
)
def test_auto_truncate_may_stand_alone(given: list[str], meant: bool) -> None:
    """`--auto-truncate` is true without a value."""
    assert settings.parse(given, {}).auto_truncate is meant


@pytest.mark.parametrize(
    ("given", "environ", "named"),
    [
        (["--max-batch-tokens", "0"], {}, "--max-batch-tokens"),
        (["--pooling", "splade"], {}, "--pooling"),
        ([], {"PORT": "http"}, "--port"),
        ([], {"AUTO_TRUNCATE": "maybe"}, "--auto-truncate"),
        (["--default-prompt", "a"], {}, "--default-prompt"),
        (["--max-batch-token", "9"], {}, "--max-batch-token"),
    ],
)
def test_what_cannot_be_used_is_named(
    given: list[str], environ: dict[str, str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong value, or an unknown flag, ends the start with a message that names it."""
    with pytest.raises(SystemExit):
        settings.parse(given, environ)
    assert named in capsys.readouterr().err
