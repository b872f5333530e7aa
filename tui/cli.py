"""The command line: which command, and what happens when it goes wrong.

Nothing heavy is imported before it is known what to do: ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from ..core.catalogue import mark, tr
from ..core.errors import CutawayError, UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


@dataclass(frozen=True, slots=True)
class Command:
    """One thing Cutaway does, and the module of `commands` that does it."""

    module: str
    help: str

    def load(self) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]:
        """The command's own ``add_arguments`` and ``run``."""
        module = import_module(f".commands.{self.module}", __package__)
        return module.add_arguments, module.run


COMMANDS = {
    "trace": Command("trace", mark("run without a screen and write a recording")),
    "open": Command("open", mark("replay a recording in the app")),
    "export": Command("export", mark("save one picture without a screen")),
    "models": Command("models", mark("list the models that can be opened here")),
    "inspect": Command("inspect", mark("show what a model is made of")),
    "bench": Command("bench", mark("measure how fast a model runs here")),
    "selftest": Command("selftest", mark("check that the numbers add up")),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that *argv* (default: the process's own arguments) asks for; return its exit status.

    What a person can act on becomes one line on stderr; ``--debug`` shows where it came from instead.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_output()
    if "--debug" not in arguments:  # a damaged model may overflow: that is seen, not printed
        warnings.filterwarnings("ignore", category=RuntimeWarning)
    try:
        try:
            return _dispatch(arguments)
        finally:
            sys.stdout.flush()  # a full disk may show only now
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone; nothing more to say to them
        _give_up_output()
        return FAILED
    except Exception as error:
        if "--debug" in arguments:
            raise
        return _complain_about(error)


def _dispatch(arguments: list[str]) -> int:
    """Find the command, read its arguments, run it."""
    if arguments[:1] == ["--debug"]:
        arguments = [*arguments[1:], "--debug"]
    if arguments and arguments[0] in COMMANDS:
        command, rest = COMMANDS[arguments[0]], arguments[1:]
        parser = _parser(f"cutaway {arguments[0]}", tr(command.help))
    else:
        command, rest = Command("app", ""), arguments
        parser = _parser("cutaway", tr("See inside a language model while it writes."), _list_of_commands())
        parser.add_argument("--version", action=_Version, help=tr("show the version and exit"))
        if rest and not rest[0].startswith("-"):
            names = ", ".join(COMMANDS)
            parser.error(tr("there is no command {name}; choose from {names}", name=repr(rest[0]), names=names))
    add_arguments, run = command.load()
    add_arguments(parser)
    return run(parser.parse_args(rest))


def _prepare_output() -> None:
    """Have somewhere to print to, and print what the output's encoding lacks as escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before we began, as a daemon's may be
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as we run
        elif stream is getattr(sys, f"__{name}__") and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Let what is still to be written go nowhere: it would only fail again as the interpreter ends."""
    stdout = sys.__stdout__
    if stdout is not None and stdout is sys.stdout:  # a caller's own is the caller's affair
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _complain_about(error: Exception) -> int:
    """Say what *error* means for a person; return the exit status that goes with it."""
    if isinstance(error, OSError) and error.errno in (ENOSPC, EFBIG, EDQUOT, EIO) and error.filename is None:
        _give_up_output()
        return complain(tr("the output cannot be written: {reason}", reason=error.strerror))
    if isinstance(error, CutawayError):
        complain(str(error))
        return USAGE if isinstance(error, UsageError) else FAILED
    if isinstance(error, MemoryError):
        return complain(tr("there is not enough memory ({reason}); use a smaller model or fewer tokens", reason=error))
    what = tr("something went wrong inside Cutaway: {kind}: {reason}", kind=type(error).__name__, reason=error)
    return complain(f"{what}; {tr('run it again with --debug to see where')}")


def complain(sentence: str) -> int:
    """Print an error as one line on stderr; return `FAILED`."""
    from ..widgets.drawable import drawable

    print(f"cutaway: error: {drawable(sentence, spaces=False)}", file=sys.stderr)
    return FAILED


class Parser(argparse.ArgumentParser):
    """Complains about wrong usage the way everything else complains."""

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if message:  # argparse itself would not mind a full disk
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        from ..widgets.drawable import drawable

        sentence = drawable(message, spaces=False)
        self.exit(USAGE, f"cutaway: error: {sentence}; {tr('see {prog} --help', prog=self.prog)}\n")


class _Version(argparse.Action):
    """Prints the version, looked up only now."""

    def __init__(self, option_strings: list[str], dest: str, **rest: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help=str(rest.get("help")))

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"cutaway {version('cutaway')}")
        parser.exit()


def _parser(prog: str, description: str, epilog: str | None = None) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog, description=description, epilog=epilog, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--debug", action="store_true", help=tr("show where an error comes from"))
    return parser


def _list_of_commands() -> str:
    lines = [f"  {name:<10} {tr(command.help)}" for name, command in COMMANDS.items()]
    return "\n".join([tr("commands (each has its own --help):"), *lines])
