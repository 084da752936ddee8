"""A kernel's messages and printed text as JSON lines on a socket."""

import io
import json
import os
import socket
import threading
import time
from typing import Any

from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session

_STREAM_FLUSH_CHARACTERS = 16 * 1024
_STREAM_FLUSH_SECONDS = 0.2


class LineSession(Session):
    """A session that writes each message as one JSON line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._channel: socket.socket | None = None
        self._owner = 0
        self._budget = self._cell_budget = 0
        self._lock = threading.RLock()

    def attach(self, channel: socket.socket, budget: int) -> None:
        """Send on ``channel`` from now on, at most ``budget`` bytes of output; the reader has a bound of its own."""
        self._channel, self._owner = channel, os.getpid()
        self.renew(budget)

    def send(  # the signature is jupyter_client's
        self,
        stream: Any,  # noqa: ARG002
        msg_or_type: Any,
        content: Any = None,
        parent: Any = None,
        ident: Any = None,  # noqa: ARG002
        buffers: Any = None,  # noqa: ARG002
        track: bool = False,  # noqa: ARG002
        header: Any = None,
        metadata: Any = None,
    ) -> Any:
        """A message of the kernel as one line on the channel; nothing from a process that a submission forked."""
        if isinstance(msg_or_type, dict):
            message = msg_or_type
        else:
            message = self.msg(msg_or_type, content=content, parent=parent, header=header, metadata=metadata)
        if self._channel is not None and self.owned():
            self.put({"type": message["header"]["msg_type"], "content": message["content"]})
        return message

    def renew(self, budget: int) -> None:
        """A new cell has its budget of output again."""
        self._budget = self._cell_budget = budget

    def owned(self) -> bool:
        """Whether this is the process that was attached, and not one forked from it."""
        return os.getpid() == self._owner

    def mute(self) -> None:
        """Send no more: hidden inputs are about to come in."""
        self._owner = 0

    def put(self, value: dict[str, Any]) -> None:
        """Write one line."""
        line = json.dumps(value, default=json_default).encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            if value["type"] == "clear_output" and self._budget >= 0:
                self._budget = self._cell_budget
            if value["type"] in {"stream", "display_data", "execute_result", "update_display_data"}:
                if self._budget < 0:
                    return
                self._budget -= len(line)
                if self._budget < 0:
                    line = b'{"type": "cut"}\n'
            assert self._channel is not None
            self._channel.sendall(line)


class Stream(io.TextIOBase):
    """sys.stdout and sys.stderr of the kernel: text goes out as stream messages, in the order it was written."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, number: int, session: LineSession) -> None:
        super().__init__()
        self.name = name
        self._number, self._session = number, session
        self._owner = os.getpid()
        self._parts: list[str] = []
        self._characters = 0
        self._flushed = time.monotonic()

    def adopt(self) -> None:
        """The process after the fork owns the stream."""
        self._owner = os.getpid()

    def fileno(self) -> int:
        """That of the real stream, for whoever writes past Python."""
        return self._number

    def isatty(self) -> bool:
        """Never: nobody sits in front of it."""
        return False

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Keep the text until the next flush, or send it where it is much; returns its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        if os.getpid() != self._owner:  # a process the student forked: its text takes the descriptor
            os.write(self._number, text.encode("utf-8", "replace"))
            return len(text)
        self._parts.append(text)
        self._characters += len(text)
        if self._characters > _STREAM_FLUSH_CHARACTERS or time.monotonic() - self._flushed > _STREAM_FLUSH_SECONDS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is kept."""
        if os.getpid() != self._owner or not self._parts:
            return
        text, self._parts, self._characters = "".join(self._parts), [], 0
        self._flushed = time.monotonic()
        self._session.send(None, "stream", {"name": self.name, "text": text})

    def set_parent(self, _parent: Any) -> None:
        """Kept for IPython; the reader knows which cell is running."""
