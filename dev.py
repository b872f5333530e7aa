"""Runs Cutaway, or its tests, from a checkout. All it takes is Python 3.11 or newer, with pip.

    python3 dev.py run [arguments of cutaway]
    python3 dev.py test [arguments of pytest]

Both bring `.venv` up to date first. It is made without a pip of its own and filled by the pip of the Python
that runs this file, which works even where the system's Python is closed to pip and has no ensurepip.
No syntax here is newer than Python 3.6, so that an old Python can still say that it is too old.
"""

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
SETTINGS = VENV / "pyvenv.cfg"
STAMP = VENV / "cutaway-setup"
LOG = VENV / "pip.log"

OLDEST_PYTHON = (3, 11)
OLDEST_PIP = (22, 3)  # the first that installs into another Python's environment
QUIETLY = ("--quiet", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore")
UNFINISHED = "unfinished\n"


def main(*arguments: str) -> int:
    """Set up what the command needs, then start it; what stands in the way is told in one line."""
    try:
        if sys.version_info < OLDEST_PYTHON:
            version = sys.version.split()[0]
            raise RuntimeError(f"Cutaway needs Python 3.11 or newer; {sys.executable} is {version}")
        if arguments[:1] == ("run",):
            set_up(extra="")
            return start("cutaway", *arguments[1:])
        if arguments[:1] == ("test",):
            set_up(extra="dev")
            os.chdir(ROOT)
            return start("pytest", *arguments[1:])
    except (RuntimeError, OSError, ValueError) as error:
        print(f"dev.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dev.py: interrupted; the next call mends the set-up", file=sys.stderr)
        return 130
    print("usage: python3 dev.py (run | test) [arguments]", file=sys.stderr)
    return 2


def start(module: str, *arguments: str) -> int:
    """Become the program, without the current folder on its path."""
    command = [str(PYTHON), "-P", "-m", module, *arguments]
    if os.name == "nt":  # execv there returns to the shell while the program still runs
        return subprocess.call(command)
    os.execv(command[0], command)


def set_up(extra: str) -> None:
    """Bring `.venv` to what pyproject.toml asks for; nothing is run when it is there already."""
    if is_sound() and read(STAMP) in (stamp(extra), stamp("dev")):
        return
    print("dev.py: setting up .venv, about a minute the first time", file=sys.stderr, flush=True)
    pip_python = find_pip()
    if not is_sound():
        make_venv()
    install(pip_python, extra)


def is_sound() -> bool:
    """Whether `.venv` can be built upon: made in this place, by this Python, and not left half done."""
    settings, remembered = read(SETTINGS), read(STAMP)
    made_by_hand = f" {VENV}\n" in settings and "= {}.{}.".format(*sys.version_info) in settings
    known = remembered.startswith(place()) if remembered else made_by_hand
    return PYTHON.exists() and bool(settings) and known


def place() -> str:
    """Where `.venv` is and whose it is: its scripts hold both, so a moved one has to be made anew."""
    return "{} Python {}.{}\n".format(VENV, *sys.version_info)


def stamp(extra: str) -> str:
    """What is remembered of a finished set-up: its place, its extra, and what pyproject.toml said."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return f"{place()}{digest} {extra}\n"


def find_pip() -> str:
    """The Python whose pip installs: this one or, in a virtual environment without pip, the one beneath."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        question = [python, "-P", "-m", "pip", "--version"]
        answer = subprocess.run(question, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        version = re.match(r"pip (\d+)\.(\d+)", answer)
        if version and (int(version[1]), int(version[2])) >= OLDEST_PIP:
            return str(python)
    raise RuntimeError(f"pip 22.3 or newer is needed; install or upgrade it for {sys.executable}")


def make_venv() -> None:
    """Make an empty `.venv`; the files that vouch for an old one go first, in case this is interrupted."""
    STAMP.unlink(missing_ok=True)
    SETTINGS.unlink(missing_ok=True)
    venv.EnvBuilder(clear=True, symlinks=os.name != "nt").create(VENV)
    STAMP.write_text(UNFINISHED, encoding="utf-8")


def install(pip_python: str, extra: str) -> None:
    """Install the checkout, editable. A refusal keeps what was there; a sudden end leaves it unfinished."""
    before = read(STAMP)
    STAMP.write_text(UNFINISHED, encoding="utf-8")
    command = [pip_python, "-P", "-m", "pip", "--python", str(PYTHON), "install", *QUIETLY]
    command += ["--no-user", "--editable", f".[{extra}]" if extra else "."]
    pip = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if pip.returncode:
        STAMP.write_text(before, encoding="utf-8")
        LOG.write_text(pip.stdout + pip.stderr, encoding="utf-8")
        raise RuntimeError(f"{reason(pip.stderr)} (more in {LOG})")
    STAMP.write_text(stamp(extra), encoding="utf-8")


def reason(complaints: str) -> str:
    """Why pip failed, in one line."""
    if "Retrying" in complaints:
        return "the package index cannot be reached; setting up needs a network connection"
    errors = re.findall(r"(?i)error: (\S+ .+)", complaints) or ["it gave no reason"]
    return f"pip could not install Cutaway: {errors[-1]}"


def read(path: Path) -> str:
    """The text of a file; empty if it is absent."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
