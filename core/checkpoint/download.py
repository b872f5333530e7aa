"""Downloading a model from the Hugging Face hub into the local cache, with the package huggingface_hub.

Only what Cutaway reads is fetched: JSON and text files, and safetensors. Weights come last, and after them
``refs/main``, so that a download that was interrupted is never taken for a model; the next one goes on from there.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..catalogue import tr
from ..errors import CutawayError, ModelError
from ..files import write_text
from .formats import PICKLES
from .hub import cached_snapshot, is_hub_id, repository
from .json_text import read_object, shown
from .locate import AbsentError, locate
from .open import INDEX, WHOLE

Progress = Callable[[str, int, int], None]
"""Told again and again: the name of a file, its bytes so far, all its bytes."""

_BESIDE_THE_WEIGHTS = frozenset(
    {
        *("config.json", "generation_config.json", INDEX),
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
        *("vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "chat_template.jinja"),
        *("tokenizer.model", "spiece.model", "vocab.txt"),  # not read, but they name the kind
    }
)
_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST_REASON = 200


def obtain(name: str, progress: Progress) -> Path:
    """Return where the model called *name* is, having downloaded it if it was on the hub only.

    What is here is not looked for on the network. Raises `ModelError`.
    """
    try:
        path = locate(name)
    except AbsentError:
        if not is_hub_id(name):
            raise
    else:
        if path != cached_snapshot(name) or not _has_pickles_only(path):
            return path
    return download(name, progress)


def download(hub_id: str, progress: Progress) -> Path:
    """Fetch the model *hub_id* into the cache, and return its folder there.

    The variables that huggingface_hub obeys hold: ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``. Raises
    `ModelError` with the reason; what has arrived until then is kept.
    """
    with _told_plainly(hub_id):
        source = _Source.of(hub_id)
        for name in source.beside_the_weights():
            source.fetch(name, progress)
        for name in source.weights():
            source.fetch(name, progress)
        main = repository(hub_id) / "refs" / "main"
        main.parent.mkdir(exist_ok=True)
        write_text(main, source.commit, overwrite=True)
        return source.folder


@dataclass(frozen=True, slots=True)
class _Source:
    """A model on the hub, as it is now."""

    hub_id: str
    commit: str
    files: tuple[str, ...]

    @classmethod
    def of(cls, hub_id: str) -> _Source:
        """Ask the hub what it has of *hub_id*."""
        from huggingface_hub import HfApi, constants, errors
        from huggingface_hub.utils import disable_progress_bars

        if constants.HF_HUB_OFFLINE:
            raise errors.OfflineModeIsEnabled
        disable_progress_bars()
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        info = HfApi(endpoint=_endpoint(), library_name="cutaway").model_info(hub_id)
        if not _COMMIT.fullmatch(info.sha or ""):
            raise OSError(tr("the hub does not say which state of the model it has"))
        return cls(hub_id, str(info.sha), tuple(file.rfilename for file in info.siblings or ()))

    @property
    def folder(self) -> Path:
        """Where its files come to lie."""
        return repository(self.hub_id) / "snapshots" / self.commit

    def beside_the_weights(self) -> list[str]:
        """The files that are read beside the weights. Raises `ModelError` where there are no weights to read."""
        self._first_weights()
        ranks = {name for name in self.files if "/" not in name and name.endswith(".tiktoken")}
        return sorted(ranks.union(_BESIDE_THE_WEIGHTS).intersection(self.files))

    def weights(self) -> list[str]:
        """The weights that `open_checkpoint` will open, where the index that lists shards has been fetched."""
        first = self._first_weights()
        if first != INDEX:
            return [first]
        shards = read_object(self.folder / INDEX).get("weight_map")
        wanted = set(shards.values()) if isinstance(shards, dict) else set()
        return sorted(name for name in self.files if name in wanted and "/" not in name)

    def _first_weights(self) -> str:
        """The file of weights, or the index of several."""
        single = [name for name in self.files if "/" not in name and name.endswith(".safetensors")]
        for name in (WHOLE, INDEX):
            if name in self.files:
                return name
        if len(single) == 1:
            return single[0]
        raise _without_weights(self.hub_id, self.files)

    def fetch(self, name: str, progress: Progress) -> None:
        """Put a file into the cache, unless it is there."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers

        from .transfer import fetch_file

        if not (self.folder / name).is_file():
            url = hf_hub_url(self.hub_id, name, revision=self.commit, endpoint=_endpoint())
            headers = build_hf_headers(library_name="cutaway")
            fetch_file(url, headers, self.folder / name, lambda done, size: progress(name, done, size))


def _endpoint() -> str:
    """The hub, or what somebody put in its place."""
    return (os.environ.get("HF_ENDPOINT") or _ENDPOINT).rstrip("/")


def _has_pickles_only(folder: Path) -> bool:
    """Whether *folder* has pickled weights and no others."""
    suffixes = {file.suffix.lower() for file in folder.iterdir()}
    return bool(suffixes & PICKLES) and not suffixes & {".safetensors", ".gguf"}


def _without_weights(hub_id: str, files: tuple[str, ...]) -> ModelError:
    """Return the error for a model of whose *files* none can be opened."""
    if any(Path(name).suffix.lower() in PICKLES for name in files):
        what = tr("{name} has pickles only, and opening a pickle can run any code", name=shown(hub_id))
    else:
        what = tr("{name} has no weights in safetensors", name=shown(hub_id))
    return ModelError(what, where=f"{_endpoint()}/{hub_id}", hint=tr("choose a model that has safetensors files"))


@contextmanager
def _told_plainly(hub_id: str) -> Iterator[None]:
    """Turn everything that can go wrong with a download of *hub_id* into a `ModelError`."""
    try:
        yield
    except CutawayError:
        raise
    except ImportError as error:
        what = tr("downloading needs the package huggingface_hub")
        raise ModelError(what, hint=tr("pip install 'cutaway[hub]'")) from error
    except Exception as error:  # it depends on the version of huggingface_hub which library speaks to the network
        what, hint = _explained(hub_id, error)
        raise ModelError(what, where=f"{_endpoint()}/{hub_id}", hint=hint) from error


def _explained(hub_id: str, error: BaseException) -> tuple[str, str]:
    """What *error* says of the download of *hub_id*, and what to do about it."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    name = shown(hub_id)
    again = tr("try again later: what has arrived is kept")
    match error:
        case errors.OfflineModeIsEnabled():
            return tr("{name} cannot be downloaded offline", name=name), tr("unset HF_HUB_OFFLINE")
        case errors.GatedRepoError():
            return tr("{name} is gated", name=name), tr("accept its terms on its page, and set HF_TOKEN")
        case errors.RepositoryNotFoundError():
            hint = tr("check the name; for a private model set HF_TOKEN")
            return tr("the hub has no model {name}, or keeps it private", name=name), hint
        case errors.HfHubHTTPError(response=response) if response is not None:
            if response.status_code in (401, 403):
                return tr("the hub refuses access to {name}", name=name), tr("check HF_TOKEN")
            return tr("the hub answers with status {status}", status=response.status_code), again
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return tr("{name} does not fit on the disk", name=name), tr("free some space and try again")
    reason = _reason(error)
    return tr("the download of {name} did not come to its end: {reason}", name=name, reason=reason), again


def _reason(error: BaseException) -> str:
    """What *error* says as a part of a sentence: the system's word on it, where it comes from there."""
    line = next(iter(str(error).strip().splitlines()), "")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            line = cause.strerror
        cause = cause.__cause__ or cause.__context__
    text = "".join(character if character.isprintable() else " " for character in line)
    return text[:_LONGEST_REASON] or type(error).__name__
