"""The local Hugging Face cache: models that were downloaded before, found without a network.

The layout is ``HUB/models--OWNER--NAME/{refs/main, snapshots/COMMIT/…}``
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
"""

import os
import re
from pathlib import Path

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_COMMIT = re.compile(r"[0-9A-Za-z]+", re.ASCII)


def hub_cache() -> Path:
    """Return the cache's folder, from the variables that huggingface_hub obeys; it need not exist."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if folder := os.environ.get(variable):
            return Path(os.path.expanduser(folder))
    if home := os.environ.get("HF_HOME"):
        return Path(os.path.expanduser(home)) / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(cache)) / "huggingface" / "hub"


def cached_snapshot(hub_id: str) -> Path | None:
    """Return the cached folder of the model *hub_id* (``owner/name``, or ``name`` alone), if there is one.

    That is the snapshot ``refs/main`` points to; without a reference, the snapshot that was made last.
    """
    if not _HUB_ID.fullmatch(hub_id):
        return None
    model = hub_cache() / "--".join(["models", *hub_id.split("/")])
    try:
        main = (model / "refs" / "main").read_text("ascii").strip()
        if _COMMIT.fullmatch(main) and (model / "snapshots" / main).is_dir():
            return model / "snapshots" / main
    except (OSError, ValueError):
        pass  # no reference, or a damaged one: the snapshots themselves are still there
    return _newest(model / "snapshots")


def _newest(snapshots: Path) -> Path | None:
    """Return the folder in *snapshots* that was changed last."""
    try:
        folders = [folder for folder in snapshots.iterdir() if folder.is_dir()]
        return max(folders, key=lambda folder: (folder.stat().st_mtime, folder.name), default=None)
    except OSError:
        return None
