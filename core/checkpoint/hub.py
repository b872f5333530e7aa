"""The local Hugging Face cache: models that were downloaded before, found without a network.

The layout is ``HUB/models--OWNER--NAME/{refs/main, snapshots/COMMIT/…}``
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
"""

import json
import os
import re
from pathlib import Path

from .open import INDEX, WHOLE, holds_weights

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_COMMIT = re.compile(r"[0-9A-Za-z]+", re.ASCII)
_LONGEST_ID = 96


def is_hub_id(name: str) -> bool:
    """Whether a model on the hub could be called *name*: ``owner/name``, or ``name`` alone."""
    return len(name) <= _LONGEST_ID and _HUB_ID.fullmatch(name) is not None and not ("--" in name or ".." in name)


def hub_cache() -> Path:
    """Return the cache's folder, from the variables that huggingface_hub obeys; it need not exist."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if folder := os.environ.get(variable):
            return Path(os.path.expanduser(folder))
    if home := os.environ.get("HF_HOME"):
        return Path(os.path.expanduser(home)) / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(cache)) / "huggingface" / "hub"


def repository(hub_id: str) -> Path:
    """Return the folder that the cache keeps for the model *hub_id*; it need not exist."""
    return hub_cache() / "--".join(["models", *hub_id.split("/")])


def cached_models() -> list[str]:
    """Return the hub ids of the models in the cache, in alphabetical order."""
    try:
        folders = [folder.name.split("--") for folder in hub_cache().iterdir()]
    except OSError:
        return []
    ids = ["/".join(parts[1:]) for parts in folders if parts[0] == "models"]
    return sorted((hub_id for hub_id in ids if cached_snapshot(hub_id)), key=str.lower)


def cached_snapshot(hub_id: str) -> Path | None:
    """Return the cached folder of the model *hub_id* (``owner/name``, or ``name`` alone), if there is one.

    That is the snapshot ``refs/main`` points to; without a reference, the snapshot that was made last.
    """
    if not is_hub_id(hub_id):
        return None
    model = repository(hub_id)
    try:
        main = (model / "refs" / "main").read_text("ascii").strip()
        if _COMMIT.fullmatch(main) and (model / "snapshots" / main).is_dir():
            return model / "snapshots" / main
    except (OSError, ValueError):
        pass  # no reference, or a damaged one: the snapshots themselves are still there
    return _newest(model / "snapshots")


def missing_file(snapshot: Path) -> str | None:
    """Return a weights file that *snapshot* lacks because its download did not come to an end, None if it is whole.

    Weights of any format make it whole: whether they can be opened is for those to say who open them.
    """
    if (snapshot / WHOLE).is_file():
        return None
    if (snapshot / INDEX).is_file():
        return next((shard for shard in _shards(snapshot / INDEX) if not (snapshot / shard).is_file()), None)
    return None if holds_weights(snapshot) else WHOLE


def _shards(index: Path) -> list[str]:
    """Return the files that *index* names; none if it is broken, which is told when it is opened."""
    try:
        return sorted(set(map(str, json.loads(index.read_bytes())["weight_map"].values())))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []


def _newest(snapshots: Path) -> Path | None:
    """Return the folder in *snapshots* that was changed last."""
    try:
        folders = [folder for folder in snapshots.iterdir() if folder.is_dir()]
        return max(folders, key=lambda folder: (folder.stat().st_mtime, folder.name), default=None)
    except OSError:
        return None
