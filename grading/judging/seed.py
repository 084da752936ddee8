"""A course's secret seed, from which the hidden questions of every exercise follow; it never enters version control."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from deep_learning_cases.errors import FileError, InputError
from grading.course.places import COURSE

__all__ = ["DEFAULT_SEED_FILE", "course_seed", "new_seed", "own_seed", "read_seed", "write_seed"]

DEFAULT_SEED_FILE = COURSE / "fixtures.seed"
MIN_SEED_CHARACTERS = 16
MAX_SEED_CHARACTERS = 1024


def new_seed() -> str:
    """A random secret of 256 bits."""
    return secrets.token_hex(32)


def course_seed(path: str | Path | None = None) -> str:
    """The seed in ``path``; without one the checkout's own seed file, which is made on first use."""
    if path is None and not DEFAULT_SEED_FILE.exists():
        # Two graders may start at once: the one that comes second reads what the first has written.
        with contextlib.suppress(InputError):
            write_seed(DEFAULT_SEED_FILE)
    return read_seed(DEFAULT_SEED_FILE if path is None else path)


def own_seed(seed: str, student: str) -> str:
    """The seed of one student's questions: what another has seen of theirs is worth nothing here."""
    return hmac.new(seed.encode(), b"questions of\0" + os.fsencode(student), hashlib.sha256).hexdigest()


def read_seed(path: str | Path) -> str:
    """The secret in ``path``; FileError if unreadable, InputError if it is no seed."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_SEED_CHARACTERS + 1)
    except OSError as error:
        raise FileError(
            f"cannot read the seed file {path} ({error.strerror or type(error).__name__}): expected a file made by "
            f"'python -m grading fixtures --seed-file FILE'; make one, or give another path"
        ) from error
    try:
        seed = content.decode("ascii").strip()
    except UnicodeDecodeError:
        seed = ""
    if not MIN_SEED_CHARACTERS <= len(seed) <= MAX_SEED_CHARACTERS or len(seed.split()) != 1:
        raise InputError(
            f"{path} holds no seed: expected one line of {MIN_SEED_CHARACTERS} or more characters; "
            f"make one with 'python -m grading fixtures --seed-file FILE'"
        )
    return seed


def write_seed(path: str | Path, *, replace: bool = False) -> str:
    """Write a new secret to ``path``, readable by its owner only, whole or not at all; return the seed.

    An existing file is kept (InputError) unless ``replace``: marks given with the old fixtures cannot be repeated
    without it.
    """
    path, seed = Path(path), new_seed()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as stream:
            stream.write(seed + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
    except FileExistsError as error:
        raise InputError(
            f"{path} exists already: a new seed would change the hidden inputs of a running course; "
            f"choose another file, or say --replace"
        ) from error
    except OSError as error:
        raise FileError(
            f"cannot write the seed file {path} ({error.strerror or type(error).__name__}): expected a writable "
            f"folder; choose another path"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return seed
