"""nbgrader's own gradebook, opened once and written one submission at a time.

nbgrader opens its Gradebook a dozen times a submission, each time with a new engine and a look at every table, and
commits after every cell.  Inside :func:`shared` there is one engine for a URL; inside :func:`transaction` what is
committed for one submission reaches the file together or not at all, so that a kill leaves no half of a grade.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deep_learning_cases.errors import FileError

__all__ = ["one_line", "shared", "transaction"]

SECONDS_TO_WAIT = 30
_open: dict[str, Any] = {}


@contextlib.contextmanager
def shared(url: str) -> Iterator[Any]:
    """Within it, every ``Gradebook(url)`` of nbgrader is the same connection; yields one.

    Raises FileError, in one line, where the gradebook cannot be opened.
    """
    from nbgrader.api import Gradebook
    from sqlalchemy import exc

    if url in _open:
        yield Gradebook(url)
        return
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).is_file():
        raise FileError(
            f"no gradebook {file}: expected nbgrader's database; run `python -m grading build` or check --course"
        )
    original_init, original_close = Gradebook.__init__, Gradebook.close
    try:
        _open[url] = _connect(url, original_init, Gradebook)
        Gradebook.__init__, Gradebook.close = _reuse(original_init), _keep(original_close)
        yield Gradebook(url)
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise FileError(one_line(url, error)) from error
    finally:
        Gradebook.__init__, Gradebook.close = original_init, original_close
        connection = _open.pop(url, None)
        if connection is not None:
            connection["session"].remove()
            connection["engine"].dispose()


@contextlib.contextmanager
def transaction(url: str) -> Iterator[None]:
    """One submission: commits inside are held back until its end; an exception takes all of them back."""
    connection = _open[url]
    session = connection["session"]
    session.commit()
    connection["held"] = True
    try:
        yield
        connection["held"] = False
        session.commit()
    except BaseException:
        connection["held"] = False
        session.rollback()
        raise
    finally:
        # Nothing of this submission stays in memory: a class of any size costs the same.
        session.remove()


def one_line(url: str, error: Exception) -> str:
    """What is wrong with a gradebook and the way out."""
    name = url.removeprefix("sqlite:///")
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    if "locked" in reason:
        return (
            f"the gradebook {name} is locked by another program: expected it free; close that program and add --resume"
        )
    if "is full" in reason or "disk I/O" in reason:
        return f"the gradebook {name} cannot be written ({reason}): expected room for it; make room and add --resume"
    if "not a database" in reason or "malformed" in reason:
        return (
            f"the gradebook {name} is damaged ({reason}): expected nbgrader's database; put a backup in its place, "
            "or move it away, run `python -m grading build` and autograde with --force"
        )
    if "readonly" in reason or "unable to open" in reason:
        return f"the gradebook {name} cannot be written ({reason}): expected a folder of yours; check its permissions"
    if "no such column" in reason or "no such table" in reason:
        return (
            f"the gradebook {name} is of another nbgrader version ({reason}): back it up and run `nbgrader db upgrade`"
        )
    return f"the gradebook {name} cannot be used ({reason}): expected nbgrader's database; check it with `nbgrader db`"


def _connect(url: str, original_init: Any, kind: Any) -> dict[str, Any]:
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session, scoped_session, sessionmaker

    # nbgrader's own first opening: it makes the tables and the course where they are missing.
    first = kind.__new__(kind)
    plain_file = url.startswith("sqlite:///") and "?" not in url
    original_init(first, f"{url}?timeout={SECONDS_TO_WAIT}" if plain_file else url)
    first.db.remove()
    first.engine.dispose()
    options = {"connect_args": {"timeout": SECONDS_TO_WAIT}} if url.startswith("sqlite") else {}
    engine = create_engine(url, future=True, **options)
    connection: dict[str, Any] = {"engine": engine, "held": False, "courses": {"default_course"}}

    class HeldSession(Session):
        def commit(self) -> None:
            if connection["held"]:
                self.flush()
                # Scores are computed by the database when a row is read: what was written must be read again.
                self.expire_all()
            else:
                super().commit()

    connection["session"] = scoped_session(sessionmaker(class_=HeldSession, autoflush=True, bind=engine, future=True))
    return connection


def _reuse(original_init: Any) -> Any:
    def init(self: Any, db_url: str, course_id: str = "default_course", authenticator: Any = None) -> None:
        connection = _open.get(db_url)
        if connection is None:
            original_init(self, db_url, course_id, authenticator)
            return
        self.engine, self.db = connection["engine"], connection["session"]
        self.course_id, self.authenticator = course_id, authenticator
        if course_id not in connection["courses"]:
            self.check_course(course_id=course_id)
            connection["courses"].add(course_id)

    return init


def _keep(original_close: Any) -> Any:
    def close(self: Any) -> None:
        if all(self.engine is not connection["engine"] for connection in _open.values()):
            original_close(self)

    return close
