"""The command line from outside: what comes out where, and with which status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import Trace
from cutaway.tui.cli import COMMANDS, main
from tests.patience import PATIENCE

DATA = Path(__file__).resolve().parents[1] / "data"
BROKEN = sorted(path.name for path in (DATA / "broken_models").iterdir())

HOSTILE = "\x1b]0;evil\x07\x1b[2J\u009b2J\u202e[red]"

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Give back what a command made of a polite kill."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", open(os.devnull, encoding="utf-8"))


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def refused(*arguments: str | Path) -> int:
    """The status of wrong usage."""
    with pytest.raises(SystemExit) as left:
        run(*arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


def error_line(captured: Output) -> str:
    """The one line on standard error, known to steer no terminal; nothing is on standard output."""
    out, err = captured.readouterr()
    assert out == ""
    assert err.startswith("cutaway: error: ") and err.endswith("\n") and err.count("\n") == 1
    assert not [c for c in err[:-1] if unicodedata.category(c)[0] == "C"], ascii(err)
    return err[len("cutaway: error: ") : -1]


def events_of(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    assert all(line.startswith('{"event": "') for line in lines)
    return [json.loads(line) for line in lines]


def check_grammar(names: list[str], layers: int, steps: int) -> None:
    step = (
        "Embedded " + "AttentionDone MlpDone BlockDone " * layers + "Normalized LogitsReady "
        + "SamplingStage " * 7 + "TokenChosen "
    )  # fmt: skip
    assert " ".join(names) + " " == "Tokenized " + step * steps + "Finished "


# trace


@pytest.mark.parametrize("capture", ["default", "all"])
def test_trace_writes_a_recording(tmp_path: Path, capsys: Output, capture: str) -> None:
    path = tmp_path / "run.cutaway"
    assert (
        run("trace", "--prompt", "A dog", "--max-new-tokens", "4", "--seed", "1", "--capture", capture, "-o", path) == 0
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"4 tokens in {re.escape(str(path))} \(as many tokens .*\); first token \d+ ms, .*\n", err)
    trace = Trace.load(path)
    assert (len(trace.steps), trace.finish_reason, trace.capture, trace.prompt) == (4, "length", capture, "A dog")


def test_trace_prints_events_as_they_happen(capsys: Output) -> None:
    assert run("trace", "--prompt", "A dog", "--max-new-tokens", "3", "--seed", "1", "--ignore-eos", "--events") == 0
    out, err = capsys.readouterr()
    events = events_of(out)
    check_grammar([event["event"] for event in events], layers=4, steps=3)
    assert events[0]["pieces"] == ["A", " dog"] and err == ""
    logits = [event["logits"] for event in events if event["event"] == "LogitsReady"]
    assert all(set(each) == {"shape", "min", "max", "mean"} and each["shape"] == [1, 4096] for each in logits)
    assert events[-1] == {"event": "Finished", "reason": "length"}


def test_trace_prints_whole_arrays_when_asked(capsys: Output, tiny: Path) -> None:
    assert run("trace", "--model", tiny, "--prompt-ids", "1,2", "--max-new-tokens", "1", "--events", "--arrays") == 0
    events = events_of(capsys.readouterr().out)
    [embedded] = [event for event in events if event["event"] == "Embedded"]
    assert np.array(embedded["sum"]).shape == (2, 48)
    [final] = [event for event in events if event.get("name") == "final"]
    assert np.array(final["values"]).sum() == pytest.approx(1)


def test_events_and_a_recording_together(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "run.cutaway"
    assert run("trace", "--prompt", "A", "--max-new-tokens", "2", "--seed", "1", "--events", "-o", path) == 0
    out, err = capsys.readouterr()
    chosen = [event["id"] for event in events_of(out) if event["event"] == "TokenChosen"]
    assert chosen == [step.id for step in Trace.load(path).steps]
    assert str(path) in err


def test_the_same_seed_writes_the_same_text(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("trace", "--max-new-tokens", "5", "--seed", "3", "-o", tmp_path / name)
    assert Trace.load(tmp_path / "one").token_ids == Trace.load(tmp_path / "two").token_ids


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--prompt A", "nothing to write"),
        ("--arrays -o run.cutaway", "add --events"),
        ("--system Hello --events", "add --chat"),
    ],
)
def test_options_that_make_no_sense_together_are_wrong_usage(capsys: Output, options: str, said: str) -> None:
    assert run("trace", *options.split()) == 2
    assert said in error_line(capsys)


def test_an_existing_file_is_refused_before_anything_runs(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.cutaway"
    path.write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr("cutaway.tui.start.prepare", None)
        assert run("trace", "-o", path) == 1
    assert "already there" in error_line(capsys)
    assert path.read_text() == "precious"
    assert run("trace", "--max-new-tokens", "1", "-o", path, "--force") == 0
    assert len(Trace.load(path).steps) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["run.cutaway"]


@pytest.mark.parametrize(("where", "said"), [("none/run.cutaway", "does not exist"), (".", "a folder")])
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, capsys: Output, where: str, said: str) -> None:
    assert run("trace", "-o", tmp_path / where) == 1
    assert said in error_line(capsys)


def test_a_run_that_fails_saves_its_whole_steps(tmp_path: Path, capsys: Output, broken: Path) -> None:
    path = tmp_path / "run.cutaway"
    assert run("trace", "--model", broken, "--prompt-ids", "1,2", "--ignore-eos", "-o", path) == 1
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith("cutaway: error: the scores hold NaN")
    trace = Trace.load(path)
    assert (trace.finish_reason, len(trace.steps)) == ("failed", 5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trace_saves_what_there_is(tmp_path: Path, number: int) -> None:
    path = tmp_path / "run.cutaway"
    command = [
        "trace",
        "--prompt-ids",
        "610,573",
        "--max-new-tokens",
        "500",
        "--ignore-eos",
        "--events",
        "-o",
        str(path),
    ]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "cutaway", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        seen = []
        for line in process.stdout:
            seen.append(json.loads(line)["event"])
            if seen.count("TokenChosen") == 3:
                process.send_signal(number)
                break
        rest = process.stdout.read()
        told = process.stderr.read()
        assert process.wait(PATIENCE) == 130
    assert "Traceback" not in told and "(stopped)" in told
    steps = (seen + re.findall('{"event": "(TokenChosen)"', rest)).count("TokenChosen")
    trace = Trace.load(path)
    assert trace.finish_reason == "stopped"
    assert 3 <= len(trace.steps) < 500 and abs(len(trace.steps) - steps) <= 1
    assert [each.name for each in tmp_path.iterdir()] == ["run.cutaway"]


def test_a_reader_who_leaves_ends_the_run_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "cutaway", "trace", "--events", "--max-new-tokens", "400", "--ignore-eos"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(PATIENCE) == 1
    assert told == b""


# Where it goes


def cutaway(*arguments: str, **rest: Any) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    return subprocess.run([sys.executable, "-P", "-m", "cutaway", *arguments], check=False, timeout=60, **rest)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device here that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["inspect", "tinymind"], ["trace", "--model=tinymind", "--events"]]
)
def test_an_output_that_is_full_is_told_in_one_line(arguments: list[str], unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        done = cutaway(*arguments, stdout=full, stderr=subprocess.PIPE, env=environment)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("cutaway: error: the output cannot be written: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="file descriptors are another matter there")
@pytest.mark.parametrize("closed", [1, 2])
def test_without_anywhere_to_print_to_a_recording_is_written_all_the_same(tmp_path: Path, closed: int) -> None:
    path = tmp_path / "run.cutaway"
    arguments = ["trace", "--model", "tinymind", "--max-new-tokens", "3", "-o", str(path)]
    done = cutaway(*arguments, preexec_fn=lambda: os.close(closed), capture_output=True)
    assert done.returncode == 0 and done.stdout == b""
    assert len(Trace.load(path).steps) == 3


def test_what_the_output_s_encoding_lacks_is_escaped() -> None:
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = cutaway("inspect", "tinymind", env=plain, capture_output=True)
    assert done.returncode == 0 and rb"1 layer \xd7 1 head" in done.stdout
    arguments = ["trace", "--events", "--prompt", "写😀", "--model", "verse", "--max-new-tokens", "1", "--chat"]
    done = cutaway(*arguments, env=plain, capture_output=True)
    rendered = json.loads(done.stdout.splitlines()[0])
    assert done.returncode == 0 and "写😀" in rendered["text"]


# inspect


def test_inspect_in_words(capsys: Output) -> None:
    assert run("inspect") == 0
    out = capsys.readouterr().out
    first, *lines = out.splitlines()
    assert first == "fable: GPT-2, 4 layers × 8 heads × 256, 512 positions, 4096 tokens"
    assert any(line.split() == ["parameters", "4,339,200"] for line in lines)
    wte = next(line for line in lines if line.startswith("transformer.wte.weight"))
    assert wte.split() == ["transformer.wte.weight", "F16", "4096", "×", "256", "2,097,152", "24.2", "%"]


def test_inspect_as_json(capsys: Output, tiny: Path) -> None:
    assert run("inspect", tiny, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["model"] == "gpt2_base"
    assert (report["architecture"]["layers"], report["architecture"]["heads"]) == (3, 4)
    parameters = dict(report["parameters"])
    assert parameters.pop("total") == sum(parameters.values())
    assert parameters["embedding"] == 97 * 48 + 64 * 48 and parameters["head"] == 0
    assert sum(tensor["share"] for tensor in report["tensors"]) == pytest.approx(1)
    assert {"name", "dtype", "shape", "bytes", "share"} == set(report["tensors"][0])
    memory = dict(report["memory_bytes"])
    assert memory.pop("total") == sum(memory.values())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_one_line(capsys: Output, name: str) -> None:
    expected = json.loads((DATA / "broken_models" / name / "expected.json").read_text("utf-8"))
    assert run("inspect", DATA / "broken_models" / name) == 1
    said = error_line(capsys)
    assert any(word in said for word in expected["about"]), said


def test_a_model_that_is_missing_is_one_line(capsys: Output) -> None:
    for command in ("inspect", "trace", "selftest"):
        arguments = ["nowhere"] if command == "inspect" else ["--model", "nowhere"]
        assert run(command, *arguments, *(["--events"] if command == "trace" else [])) == 1
        assert "no model is called" in error_line(capsys)


# selftest


def test_selftest_holds_for_the_embedded_model(capsys: Output) -> None:
    assert run("selftest", "--prompt", "Once upon a time") == 0
    out = capsys.readouterr().out
    first, *checks = out.splitlines()
    assert first == "fable: 4 tokens of prompt" and len(checks) >= 6
    assert all(re.fullmatch(r"  ok     \S.* \d\.\de[+-]\d\d  \(at most .*\)", line) for line in checks)


def test_selftest_fails_when_an_invariant_does_not_hold(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    from cutaway.core import checks

    held = checks.check_model
    monkeypatch.setattr(
        checks, "check_model", lambda *a: [*held(*a), checks.Check("two and two are five", float("nan"), 0.0)]
    )
    assert run("selftest", "--prompt", "A") == 1
    out, err = capsys.readouterr()
    assert "FAILED two and two are five" in out
    assert err == "cutaway: error: one of the invariants does not hold\n"


# what goes wrong


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["trace", "--frobnicate"],
        ["trace", "--max-new-tokens", "0"],
        ["trace", "--prompt-ids", "1,x"],
        ["inspect", "a", "b"],
        ["--top-k", "many"],
        ["--prompt"],
        ["trace", "--temp", "1"],
        [HOSTILE],
        ["trace", HOSTILE],
        ["trace", "--seed", HOSTILE],
        ["trace", "--ablate", HOSTILE],
        ["trace", "--ablate", "x"],
        ["trace", "--temperature", "-1"],
        ["trace", "--top-p", "1.5"],
        ["trace", "--prompt", "A", "--prompt-ids", "1"],
    ],
)
def test_wrong_usage_is_one_line_and_status_2(capsys: Output, arguments: list[str]) -> None:
    assert refused(*arguments) == 2
    assert "--help" in error_line(capsys)


def test_an_unknown_command_names_those_there_are(capsys: Output) -> None:
    assert refused("frobnicate") == 2
    said = error_line(capsys)
    assert "'frobnicate'" in said and all(name in said for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace", "--events", "--ablate", "9.0"], "no layer 9"),
        (["trace", "--events", "--prompt-ids", "5000"], "5000 is not in the vocabulary"),
        (["trace", "--events", "--prompt-file", "/nowhere/at/all"], "cannot be read"),
        (["trace", "--events", "--chat"], "no chat template"),
        (["trace", "--events", "--prompt", "word " * 600], "at most 512"),
        ([], "needs a terminal"),
    ],
)
def test_what_a_person_can_mend_is_one_line_and_status_1(capsys: Output, arguments: list[str], said: str) -> None:
    assert run(*arguments) == 1
    assert said in error_line(capsys)


def test_hostile_names_reach_no_terminal_raw(capsys: Output, tmp_path: Path) -> None:
    for arguments in (
        ["inspect", f"/{HOSTILE}"],
        ["inspect", "\udcff\udc9b.safetensors"],
        ["trace", "--events", "--model", HOSTILE],
        ["trace", "-o", f"/{HOSTILE}/run.cutaway"],
        ["trace", "--events", "--prompt-file", HOSTILE],
    ):
        assert run(*arguments) == 1
        assert error_line(capsys)


@pytest.mark.parametrize("name", [HOSTILE.replace("/", ""), "folder\udcff"])
def test_a_model_in_a_folder_of_a_hostile_name(capsys: Output, tmp_path: Path, tiny: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tiny)
    for options in ([], ["--json"]):
        assert run("inspect", tmp_path / name, *options) == 0
        out = capsys.readouterr().out
        assert not [c for c in out if c != "\n" and unicodedata.category(c)[0] == "C"], ascii(out)


def test_a_bug_is_one_line_unless_somebody_looks_for_it(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("cutaway.tui.commands.inspect.inspect", fail)
    assert run("inspect") == 1
    said = error_line(capsys)
    assert "ZeroDivisionError" in said and "--debug" in said
    with pytest.raises(ZeroDivisionError):
        run("inspect", "--debug")


def test_too_little_memory_is_one_line(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("cutaway.tui.commands.inspect.inspect", fail)
    assert run("inspect") == 1
    assert "9 TiB" in error_line(capsys)


def test_broken_settings_are_one_line(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    from cutaway.tui.settings import settings_path

    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_text("tempreature = 1\n")
    assert run("trace", "--events") == 1
    assert "temperature" in error_line(capsys)


# quick answers


def test_version_and_help(capsys: Output) -> None:
    assert refused("--version") == 0
    assert re.fullmatch(r"cutaway \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert refused("--help") == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in COMMANDS) and "--prompt TEXT" in out
    for name in COMMANDS:
        assert refused(name, "--help") == 0
        assert f"usage: cutaway {name}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", ["--version", "--help", "trace --help", "inspect --help", "frobnicate"])
def test_quick_answers_load_nothing_heavy(arguments: str, tmp_path: Path) -> None:
    code = (
        "import sys; from cutaway.tui.cli import main\n"
        f"try: main({arguments.split()!r})\n"
        "except SystemExit: print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "cutaway" in loaded and not loaded & {"textual", "numpy", "tiktoken", "jinja2", "safetensors"}


def test_every_command_has_its_module() -> None:
    for command in COMMANDS.values():
        add_arguments, run_it = command.load()
        assert callable(add_arguments) and callable(run_it)
