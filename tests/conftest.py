"""What every test starts from: an environment that says nothing, and a home that holds nothing."""

import importlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, configuration, settings

SPOKEN = ("NO_COLOR", "TEXTUAL", "COLORTERM", "SSH_CONNECTION", "CUTAWAY_", "HF_", "HUGGINGFACE_")
"""How the names of variables begin that would change what is drawn, or what is opened."""

for name in [name for name in os.environ if name.startswith(SPOKEN)]:
    del os.environ[name]
os.environ["TEXTUAL_ANIMATIONS"] = "none"
if constants := sys.modules.get("textual.constants"):  # a pytest plugin was quicker; it reads the variables once
    importlib.reload(constants)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background: what a test starts would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

configuration.set_hypothesis_home_dir(Path(__file__).parents[1] / ".pytest_cache" / "hypothesis")
settings.register_profile(
    "cutaway",
    derandomize=True,  # a test that fails fails again
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cutaway")


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without settings or caches."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def nobody(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings and the model cache of whoever runs the tests out of them."""
    variables: Mapping[str, Path] = {
        "HOME": empty_home,
        "XDG_CONFIG_HOME": empty_home / ".config",
        "XDG_CACHE_HOME": empty_home / ".cache",
        "XDG_STATE_HOME": empty_home / ".state",
    }
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(folder))
