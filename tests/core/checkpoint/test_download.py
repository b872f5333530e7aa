"""Downloading from the hub: what is asked for, what comes of it, and what is left when it goes wrong.

The hub is a server on this machine that answers as huggingface.co does.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from cutaway.core import Generation, ModelError, SamplingConfig, load_model
from cutaway.core.checkpoint.download import obtain
from cutaway.core.checkpoint.hub import cached_models, cached_snapshot, hub_cache

pytest.importorskip("huggingface_hub")

MODELS = Path(__file__).parents[2] / "data" / "models"
ROOT = Path(__file__).parents[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 1 << 18


class Hub(ThreadingHTTPServer):
    """A hub with the models in one folder."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.folder = folder
        self.asked: list[tuple[str, str, str | None]] = []
        """Method, last part of the path, range."""
        self.break_off: dict[str, list[int]] = {}
        """For a file: after how many bytes the connection is closed, the first time it is asked for, the second…"""
        self.refuse: tuple[int, dict[str, str]] | None = None
        """Status and headers of every answer, where something is wrong with all of them."""
        self.corrupt = False
        self.goes_on = threading.Event()
        """Until then the second half of any weights waits."""
        self.goes_on.set()
        self.commit = COMMIT
        self.tokens: set[str | None] = set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def asked_for(self, method: str, name: str) -> list[str | None]:
        """The ranges that were asked for."""
        return [span for how, what, span in self.asked if (how, what) == (method, name)]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that have gone."""


class Page(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        hub = self.server
        hub.asked.append((self.command, self.path.rpartition("/")[2], self.headers.get("Range")))
        hub.tokens.add(self.headers.get("Authorization"))
        if hub.refuse is not None:
            status, headers = hub.refuse
            return self.send(status, b"", headers)
        parts = self.path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self.describe("/".join(parts[2:4]))
        file = hub.folder / parts[0] / parts[1] / "/".join(parts[4:])
        if parts[2:4] == ["resolve", hub.commit] and file.is_file():
            return self.give(file, body)
        self.send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def describe(self, hub_id: str) -> None:
        folder = self.server.folder / hub_id
        if not folder.is_dir():
            return self.send(401, b"", {"X-Error-Code": "RepoNotFound"})
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        about = {"id": hub_id, "sha": self.server.commit, "siblings": [{"rfilename": name} for name in names]}
        self.send(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def give(self, file: Path, body: bool) -> None:
        data = file.read_bytes()
        large = file.suffix == ".safetensors"
        etag = hashlib.sha256(data).hexdigest() if large else hashlib.sha1(data).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": self.server.commit, "Accept-Ranges": "bytes"}
        status, size = 200, len(data)
        if body and (span := self.headers.get("Range")):
            begin = int(span.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
            status, data = 206, data[begin:]
        if body and self.server.corrupt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        if not body:
            return self.send(status, b"", headers, length=size)
        stops = self.server.break_off.get(file.name)
        if not stops:
            return self.send(status, data, headers)
        self.send(status, data[: stops.pop(0)], headers, length=len(data))
        self.close_connection = True

    def send(self, status: int, data: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2])
            if self.path.endswith(".safetensors"):
                self.server.goes_on.wait(60)
            self.wfile.write(data[len(data) // 2 :])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, and an empty cache."""
    hub = Hub(tmp_path / "hub")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.chdir(tmp_path)
    yield hub
    hub.goes_on.set()
    hub.shutdown()
    hub.server_close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.fixture
def published(hub: Hub) -> Callable[..., Path]:
    """A function that puts a model on the hub: one of the reference models, and what lies beside it there."""

    def publish(name: str = "gpt2_base", hub_id: str = "owner/name") -> Path:
        folder = hub.folder / hub_id
        shutil.copytree(MODELS / name, folder)
        (folder / "onnx").mkdir()
        for file in ("pytorch_model.bin", "onnx/model.safetensors", "onnx/config.json", "README.md"):
            (folder / file).write_bytes(b"not this")
        (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
        return folder

    return publish


def ignore(name: str, done: int, size: int) -> None:
    pass


def enlarge(folder: Path, pieces: int) -> bytes:
    """Give the model in *folder* weights of so many pieces, and return their file."""
    (folder / "model.safetensors").unlink()
    save_file({"x": np.arange(pieces * PIECE // 4, dtype="f4")}, folder / "model.safetensors")
    return (folder / "model.safetensors").read_bytes()


def parts() -> list[Path]:
    return sorted(hub_cache().rglob("*.incomplete"))


def test_a_model_comes_down_and_opens(hub: Hub, published: Callable[..., Path]) -> None:
    folder = published()
    told: list[tuple[str, int, int]] = []
    path = obtain("owner/name", lambda *progress: told.append(progress))
    assert path == cached_snapshot("owner/name") == hub_cache() / "models--owner--name" / "snapshots" / COMMIT
    assert (hub_cache() / "models--owner--name" / "refs" / "main").read_text() == COMMIT
    assert cached_models() == ["owner/name"] and not parts()
    names = {"config.json", "generation_config.json", "chat_template.jinja", "model.safetensors"}
    assert {str(file.relative_to(path)) for file in path.rglob("*")} == names
    size = (folder / "model.safetensors").stat().st_size
    assert told[-1] == ("model.safetensors", size, size)
    here, there = load_model("owner/name"), load_model(folder)
    assert here.name == "owner/name" and here.digest == there.digest
    runs = [Generation(model, [1, 2, 3], SamplingConfig(greedy=True), max_new_tokens=3) for model in (here, there)]
    assert [list(run) and run.trace.token_ids for run in runs][0] == runs[1].trace.token_ids


def test_huggingface_hub_finds_it_too(hub: Hub, published: Callable[..., Path]) -> None:
    from huggingface_hub import try_to_load_from_cache

    path = obtain("owner/name", ignore) if published() else None
    found = try_to_load_from_cache("owner/name", "model.safetensors", cache_dir=hub_cache())
    assert path is not None and found == str(path / "model.safetensors")


def test_weights_come_last_and_never_a_pickle(hub: Hub, published: Callable[..., Path]) -> None:
    published()
    obtain("owner/name", ignore)
    files = [name for method, name, _ in hub.asked if method == "GET"]
    assert files[-1] == "model.safetensors" and "pytorch_model.bin" not in files and "README.md" not in files


def test_shards_come_by_their_index(hub: Hub, published: Callable[..., Path]) -> None:
    folder = published("llama_headdim_mqa")
    (folder / "other-00001-of-00001.safetensors").write_bytes(b"not this")
    path = obtain("owner/name", ignore)
    shards = sorted(file.name for file in path.glob("*.safetensors"))
    assert shards == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert load_model("owner/name").digest == load_model(MODELS / "llama_headdim_mqa").digest


def test_what_is_here_is_not_asked_for(hub: Hub, published: Callable[..., Path], tmp_path: Path) -> None:
    published()
    path = obtain("owner/name", ignore)
    hub.asked.clear()
    assert obtain("owner/name", ignore) == path
    assert obtain("fable", ignore).name == "fable"
    shutil.copytree(MODELS / "gpt2_base", "owner/name")
    assert obtain("owner/name", ignore) == Path("owner/name")
    assert hub.asked == []


def test_a_name_that_is_no_hub_id_is_not_asked_for(hub: Hub) -> None:
    for name in ("a/b/c", "../x", "x y", "a--b"):
        with pytest.raises(ModelError, match="no model is called"):
            obtain(name, ignore)
    assert hub.asked == []


def test_pickles_in_the_cache_do_not_stand_in_the_way(hub: Hub, published: Callable[..., Path]) -> None:
    published()
    old = hub_cache() / "models--owner--name" / "snapshots" / "ffff"
    old.mkdir(parents=True)
    (old / "pytorch_model.bin").touch()
    assert obtain("owner/name", ignore).name == COMMIT
    assert load_model("owner/name").name == "owner/name"


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_breaks_is_taken_up_again(hub: Hub, published: Callable[..., Path]) -> None:
    data = enlarge(published(), 6)
    hub.break_off["model.safetensors"] = [2 * PIECE + 5, PIECE + 5]
    path = obtain("owner/name", ignore)
    assert (path / "model.safetensors").read_bytes() == data
    assert hub.asked_for("GET", "model.safetensors") == [None, f"bytes={2 * PIECE}-", f"bytes={3 * PIECE}-"]


def test_an_interrupted_download_goes_on_where_it_was(hub: Hub, published: Callable[..., Path]) -> None:
    data = enlarge(published(), 6)

    def interrupt(name: str, done: int, size: int) -> None:
        if done >= 3 * PIECE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        obtain("owner/name", interrupt)
    [part] = parts()
    assert data.startswith(part.read_bytes()) and part.stat().st_size >= 3 * PIECE
    with pytest.raises(ModelError, match=r"'owner/name' only a part.*'model\.safetensors' is missing.*add --download"):
        load_model("owner/name")
    hub.asked.clear()
    told: list[int] = []
    path = obtain("owner/name", lambda name, done, size: told.append(done))
    assert (path / "model.safetensors").read_bytes() == data and not parts()
    [span] = hub.asked_for("GET", "model.safetensors")
    assert span is not None and told[0] == int(span[6:-1]) >= 3 * PIECE
    assert [name for method, name, _ in hub.asked if method == "GET"] == ["name", "model.safetensors"]


@pytest.mark.usefixtures("impatient")
def test_an_interrupted_download_of_a_newer_state_leaves_the_older_one(
    hub: Hub, published: Callable[..., Path]
) -> None:
    from cutaway.core.checkpoint.download import download

    folder = published()
    old = obtain("owner/name", ignore)
    enlarge(folder, 2)
    hub.commit = "f" * 40
    hub.break_off["model.safetensors"] = [5] * 99
    with pytest.raises(ModelError):
        download("owner/name", ignore)
    assert cached_snapshot("owner/name") == old and load_model("owner/name").name == "owner/name"


@pytest.mark.usefixtures("impatient")
def test_a_shard_that_is_missing_is_told(hub: Hub, published: Callable[..., Path]) -> None:
    published("llama_headdim_mqa")
    hub.break_off["model-00002-of-00002.safetensors"] = [5] * 99
    with pytest.raises(ModelError, match="did not come to its end"):
        obtain("owner/name", ignore)
    with pytest.raises(ModelError, match="'model-00002-of-00002.safetensors' is missing"):
        load_model("owner/name")
    hub.break_off.clear()
    obtain("owner/name", ignore)
    assert load_model("owner/name").config.layers


@pytest.mark.usefixtures("impatient")
def test_damage_is_noticed_and_not_kept(hub: Hub, published: Callable[..., Path]) -> None:
    published()
    hub.corrupt = True
    hub.folder.joinpath("owner/name/config.json").write_text("{}")
    with pytest.raises(ModelError, match="not what the hub has"):
        obtain("owner/name", ignore)
    assert not parts()


REFUSALS = [
    ((401, {"X-Error-Code": "RepoNotFound"}), r"no model 'owner/name', or keeps it private \(.*\); check the name"),
    ((404, {"X-Error-Code": "RepoNotFound"}), "no model 'owner/name'"),
    ((401, {"X-Error-Code": "GatedRepo"}), "'owner/name' is gated .*accept its terms.*HF_TOKEN"),
    ((403, {"X-Error-Code": "GatedRepo"}), "'owner/name' is gated"),
    ((403, {}), "refuses access to 'owner/name' .*check HF_TOKEN"),
    ((500, {}), "answers with status 500 .*try again later"),
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("refusal", "said"), REFUSALS)
def test_refusals_are_one_sentence(hub: Hub, refusal: tuple[int, dict[str, str]], said: str) -> None:
    hub.refuse = refusal
    with pytest.raises(ModelError, match=said) as caught:
        obtain("owner/name", ignore)
    assert "\n" not in str(caught.value) and hub.address in str(caught.value)
    assert not hub_cache().exists()


def test_a_model_that_is_not_there(hub: Hub) -> None:
    with pytest.raises(ModelError, match="the hub has no model 'owner/nothing', or keeps it private"):
        obtain("owner/nothing", ignore)


@pytest.mark.parametrize(("names", "said"), [(["pytorch_model.bin"], "pickles only"), (["notes"], "no weights in")])
def test_a_model_without_safetensors_is_refused_before_anything_is_fetched(
    hub: Hub, names: list[str], said: str
) -> None:
    (hub.folder / "owner" / "name").mkdir(parents=True)
    for name in [*names, "config.json"]:
        (hub.folder / "owner" / "name" / name).write_text("{}")
    with pytest.raises(ModelError, match=said):
        obtain("owner/name", ignore)
    assert len(hub.asked) == 1 and not hub_cache().exists()


@pytest.mark.usefixtures("impatient")
def test_a_server_that_goes_away(hub: Hub, published: Callable[..., Path]) -> None:
    enlarge(published(), 4)

    def unplug(name: str, done: int, size: int) -> None:
        if name == "model.safetensors" and done:
            hub.refuse = (503, {})

    hub.break_off["model.safetensors"] = [2 * PIECE] * 99
    with pytest.raises(ModelError, match="status 503.*what has arrived is kept"):
        obtain("owner/name", unplug)
    assert [part.stat().st_size for part in parts()] == [2 * PIECE]
    with pytest.raises(ModelError, match="only a part"):
        load_model("owner/name")


@pytest.mark.usefixtures("impatient")
def test_without_a_network(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="did not come to its end: Connection refused .*try again later") as caught:
        obtain("owner/name", ignore)
    assert "\n" not in str(caught.value)


def test_offline_is_obeyed(hub: Hub, published: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    published()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"'owner/name' cannot be downloaded offline .*unset HF_HUB_OFFLINE"):
        obtain("owner/name", ignore)
    assert hub.asked == []


def test_the_token_is_sent(hub: Hub, published: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    published()
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    obtain("owner/name", ignore)
    assert hub.tokens == {"Bearer hf_secret"}


def test_a_hub_that_is_none(hub: Hub, published: Callable[..., Path]) -> None:
    published()
    hub.commit = "../../../evil"
    with pytest.raises(ModelError, match="does not say which state"):
        obtain("owner/name", ignore)
    assert not hub_cache().exists()


def test_without_the_extra_it_says_how_to_get_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match=r"needs the package huggingface_hub; pip install 'cutaway\[hub\]'"):
        obtain("owner/name", ignore)
    monkeypatch.setattr("cutaway.core.checkpoint.locate.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'cutaway\[hub\]' and add --download to fetch it from the hub"):
        load_model("owner/name")


def test_without_consent_it_says_what_to_add() -> None:
    with pytest.raises(ModelError, match="no model is called 'owner/name'.*; add --download to fetch it from the hub"):
        load_model("owner/name")


# the command line


def run(hub: Hub, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cutaway", *arguments],
        cwd=hub.folder.parent,
        env=os.environ | environment,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


COMMANDS = [
    ["trace", "--prompt-ids", "1,2", "--max-new-tokens", "2", "-o", "run.cutaway"],
    ["inspect"],
    ["selftest", "--prompt-ids", "1,2"],
    ["export", "--prompt-ids", "1,2", "--max-new-tokens", "1", "-o", "picture.txt"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_every_command_downloads_when_it_may(command: list[str], hub: Hub, published: Callable[..., Path]) -> None:
    published()
    named = ["owner/name"] if command[0] == "inspect" else ["--model", "owner/name"]
    refused = run(hub, *command, *named)
    assert refused.returncode == 1 and "add --download" in refused.stderr and hub.asked == []
    done = run(hub, *command, *named, "--download")
    assert done.returncode == 0, done.stderr
    assert "safetensors" not in done.stderr  # no bar where there is no terminal
    assert run(hub, *command, *named, *(["--force"] if "-o" in command else []), HF_HUB_OFFLINE="1").returncode == 0


def test_offline_is_one_line(hub: Hub) -> None:
    done = run(hub, "inspect", "owner/name", "--download", HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and done.stdout == "" and hub.asked == []
    [line] = done.stderr.splitlines()
    assert line.startswith("cutaway: error: 'owner/name' cannot be downloaded offline")


def on_a_terminal(hub: Hub, *arguments: str) -> Any:
    pexpect = pytest.importorskip("pexpect")
    where = {"env": os.environ | {"TERM": "xterm-256color"}, "cwd": str(hub.folder.parent), "dimensions": (30, 100)}
    return pexpect.spawn(sys.executable, ["-m", "cutaway", *arguments], encoding="utf-8", timeout=60, **where)


def test_a_terminal_shows_how_far_it_is_and_ctrl_c_keeps_that(hub: Hub, published: Callable[..., Path]) -> None:
    size = len(enlarge(published(), 8))
    hub.goes_on.clear()
    terminal = on_a_terminal(hub, "inspect", "owner/name", "--download")
    terminal.expect(r"model\.safetensors")
    terminal.expect(r"1\.0/2\.1")
    terminal.sendintr()
    terminal.expect("stopped; what has arrived is kept, and --download goes on from there")
    terminal.expect("$")
    terminal.wait()
    assert terminal.exitstatus == 130 and [part.stat().st_size for part in parts()] == [size // 2 // PIECE * PIECE]


def test_the_app_downloads_before_its_screen_opens(hub: Hub, published: Callable[..., Path]) -> None:
    published()
    hub.goes_on.clear()
    terminal = on_a_terminal(hub, "--model", "owner/name", "--download", "--prompt-ids", "1,2")
    terminal.expect(r"model\.safetensors")
    hub.goes_on.set()
    terminal.expect(r"\x1b\[\?1049h")
    terminal.expect("owner/name")
    terminal.close(force=True)
    assert load_model("owner/name").name == "owner/name"
