"""From a kernel's messages to notebook outputs: nbclient's own code, behind a check of everything that comes in."""

import logging
from collections import Counter
from typing import Any

from grading.quick_imports import leave_out_format_checker

__all__ = ["Outputs"]

_OUTPUT_TYPES = {"stream", "display_data", "execute_result", "update_display_data", "error", "clear_output"}
_MAX_OUTPUTS_PER_CELL = 2000
_MAX_LOOKS_PER_CELL = 200_000
"""An update of a display is looked for among all outputs; so many looks are fractions of a second."""
_MAX_DEPTH = 20
_MAX_UPDATES = 100_000
"""Outputs of a run that messages may change afterwards: one message changes all outputs of its name."""


class Outputs:
    """The outputs of all cells of one run; at most ``cell_bytes`` of a cell and eight times that in all are kept."""

    def __init__(self, count: int, cell_bytes: int, note: str) -> None:
        leave_out_format_checker()
        import nbformat
        from nbclient import NotebookClient

        self._node = nbformat.NotebookNode
        cells = [
            self._node(
                id=str(index), cell_type="code", metadata=self._node(), source="", outputs=[], execution_count=None
            )
            for index in range(count)
        ]
        notebook = self._node(nbformat=4, nbformat_minor=5, metadata=self._node(), cells=cells)
        self._client = NotebookClient(notebook, store_widget_state=False, log=logging.getLogger("grading.outputs"))
        self.begin()
        self.cells = cells
        self._cell_bytes, self._note = cell_bytes, note
        self._left = [cell_bytes] * count
        self._total = 8 * cell_bytes
        self.cut = [False] * count
        self._named: Counter[str] = Counter()
        self._updates_left = _MAX_UPDATES
        self._looks = [_MAX_LOOKS_PER_CELL] * count

    def begin(self) -> None:
        """A new cell starts: a clear_output(wait=True) of the one before no longer holds."""
        self._client.clear_before_next_output = False

    def message(self, index: int, value: dict[str, Any], size: int) -> None:
        """Take one message of ``size`` bytes into cell ``index``; whatever is malformed is dropped."""
        kind = value.get("type")
        if not self.cells:
            return
        if kind == "cut":
            self._cut(index)
            return
        if kind not in _OUTPUT_TYPES or (kind == "update_display_data" and self._updates_left < 0):
            return
        content = _content(str(kind), value.get("content"))
        if content is None:
            return
        if kind == "clear_output":  # what it removes no longer counts: an animation may show many figures in turn
            self._total += self._cell_bytes - self._left[index]
            self._left[index] = self._cell_bytes
        else:
            self._looks[index] -= 1 + (kind == "update_display_data") * sum(len(cell.outputs) for cell in self.cells)
            if (
                self._looks[index] < 0
                or size > self._left[index]
                or size > self._total
                or len(self.cells[index].outputs) >= _MAX_OUTPUTS_PER_CELL
            ):
                self._cut(index)
                return
            self._left[index] -= size
            self._total -= size
        name = content.get("transient", {}).get("display_id", "")
        self._named[name] += 1 if name and kind != "update_display_data" else 0
        if kind == "update_display_data":
            self._updates_left -= self._named[name]
            if self._updates_left < 0:
                self._cut(index)
                return
        message = {"msg_type": kind, "header": {"msg_type": kind}, "parent_header": {}, "content": self._nodes(content)}
        import nbformat

        try:
            self._client.process_message(message, self.cells[index], index)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, nbformat.ValidationError):
            return

    def text(self, index: int, name: str, chunk: bytes) -> None:
        """Take raw bytes of the process's own stdout or stderr."""
        if chunk:
            text = chunk.decode("utf-8", "replace")
            self.message(index, {"type": "stream", "content": {"name": name, "text": text}}, len(chunk))

    def finished(self) -> list[list[dict[str, Any]]]:
        """The outputs per cell, neighbouring pieces of one stream joined, a note where something was cut."""
        result = []
        for index, cell in enumerate(self.cells):
            outputs = _joined([_plain(output) for output in cell.outputs])
            if self.cut[index]:
                outputs.append({"output_type": "stream", "name": "stdout", "text": f"\n[{self._note}]\n"})
            result.append(outputs)
        return result

    def _cut(self, index: int) -> None:
        self.cut[index] = True

    def _nodes(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._node({key: self._nodes(item) for key, item in value.items()})
        if isinstance(value, list):
            return [self._nodes(item) for item in value]
        if isinstance(value, str) and not value.isascii():
            return value.encode("utf-8", "replace").decode()  # half a surrogate pair could not be written to a file
        return value


def _content(kind: str, content: Any) -> dict[str, Any] | None:
    """The content of a message with exactly the fields it must have; None if it has not."""
    if not isinstance(content, dict):
        return None
    if kind == "stream":
        name, text = content.get("name"), content.get("text")
        return {"name": name, "text": text} if name in ("stdout", "stderr") and isinstance(text, str) else None
    if kind == "clear_output":
        return {"wait": content.get("wait") is True}
    if kind == "error":
        traceback = content.get("traceback")
        lines = [line for line in traceback if isinstance(line, str)] if isinstance(traceback, list) else []
        return {"ename": str(content.get("ename"))[:500], "evalue": str(content.get("evalue")), "traceback": lines}
    data, metadata, transient = content.get("data"), content.get("metadata"), content.get("transient")
    if not isinstance(data, dict) or not _shallow(data) or not _shallow(metadata):
        return None
    kept: dict[str, Any] = {
        "data": {key: item for key, item in data.items() if _mime(key, item)},
        "metadata": metadata if isinstance(metadata, dict) else {},
    }
    if kind == "execute_result":
        count = content.get("execution_count")
        kept["execution_count"] = (
            count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 31 else None
        )
    if isinstance(transient, dict) and isinstance(transient.get("display_id"), str):
        kept["transient"] = {"display_id": transient["display_id"][:200]}
    return kept


def _mime(key: str, item: Any) -> bool:
    """A media type whose data are what nbformat allows: text, lines of text, or JSON where the type is JSON."""
    if "/" not in key or len(key) > 200:
        return False
    if key.partition(";")[0].endswith("json"):
        return True
    return isinstance(item, str) or (isinstance(item, list) and all(isinstance(line, str) for line in item))


def _shallow(value: Any, depth: int = 0) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(_shallow(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return all(_shallow(item, depth + 1) for item in value)
    return True


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output["output_type"] == "stream" == last["output_type"] and last["name"] == output["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
