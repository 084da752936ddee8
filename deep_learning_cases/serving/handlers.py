"""The pages of the service: what HTTP says and what HTTP can do wrong; the work itself is the predictor's."""

import asyncio
import json
from http.client import responses
from typing import Any

from deep_learning_cases.errors import MissingDependencyError
from deep_learning_cases.serving.metrics import CONTENT_TYPE
from deep_learning_cases.serving.predictor import Answer, Prediction, Predictor, Refusal

try:
    from tornado import web
    from tornado.httputil import HTTPHeaders
except ImportError as missing:
    raise MissingDependencyError(
        "Tornado is not installed: the service is built on it; install it with: "
        "pip install 'deep_learning_cases[service]'"
    ) from missing

__all__ = ["Health", "MetricsPage", "Missing", "OpenRequests", "Predict"]

DRAINED_BODIES = 4
"""A body of up to so many times the cap is read to its end and dropped, so that the client reads its 413 in peace."""


MAX_URI_BYTES = 2048


class OpenRequests:
    """The predictions asked for on all connections: which are not answered yet, and the bytes they are sending."""

    def __init__(self, bodies_bytes: int) -> None:
        self.requests: set[Predict] = set()
        self._bound, self._bytes = bodies_bytes, 0

    @property
    def admitted(self) -> int:
        """Those with a place in the queue or in a batch; the others are still being received."""
        return sum(request.admitted for request in self.requests)

    def receive(self, count: int) -> bool:
        """``count`` more bytes are held (fewer if negative); False, and nothing changes, if that is too many."""
        if self._bytes + count > self._bound:
            return False
        self._bytes += count
        return True


@web.stream_request_body
class Page(web.RequestHandler):
    """What all pages share: bodies are dropped as they come, failures are JSON, the answers are counted."""

    def initialize(self, predictor: Predictor) -> None:
        """Tornado's constructor: what the page answers from."""
        self.predictor = predictor
        self._dropped = 0

    def prepare(self) -> None:
        """Before the body: what is not known, or is announced as far too large, is not waited for."""
        if len(self.request.uri or "") > MAX_URI_BYTES:
            self.set_header("Connection", "close")
            self.refuse(
                Refusal(414, f"the address is too long: expected at most {MAX_URI_BYTES} characters; shorten it")
            )
            return
        if self.request.headers.get("Expect", "100-continue").lower() != "100-continue":
            self.set_header("Connection", "close")
            self.refuse(Refusal(417, "the header Expect asks for what is not known: expected 100-continue, or none"))
            return
        announced = self.request.headers.get("Content-Length", "0")
        if announced.isdecimal() and int(announced) > DRAINED_BODIES * self.predictor.limits.body_bytes:
            self.set_header("Connection", "close")
            self.refuse(self.too_large())

    def data_received(self, chunk: bytes) -> None:
        """Dropped, up to a bound: only /predict wants a body."""
        self._dropped += len(chunk)
        if self._dropped > DRAINED_BODIES * self.predictor.limits.body_bytes:
            self.set_header("Connection", "close")
            self.refuse(self.too_large())

    def too_large(self) -> Refusal:
        """The refusal of a body above the cap."""
        return Refusal(413, f"the body is too large: expected at most {self.predictor.limits.body_bytes} bytes")

    def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, unless something was answered already."""
        if self._finished:
            return
        self.set_status(refusal.status, None if refusal.status in responses else "Client Closed Request")
        if refusal.retry_after_s is not None:
            self.set_header("Retry-After", str(refusal.retry_after_s))
        self.finish_json({"error": refusal.message})

    def finish_json(self, value: dict[str, Any]) -> None:
        """Answer with one JSON object on one line."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        if self.predictor.stopping:
            self.set_header("Connection", "close")
        self.finish(json.dumps(value, allow_nan=False) + "\n")

    def write_error(self, status_code: int, **_facts: Any) -> None:
        """Tornado's own failures (no such page, wrong method, a defect of ours) in the same form."""
        if status_code == 405:
            self.set_header("Allow", self.METHOD)
        if self.request.method not in self.SUPPORTED_METHODS:  # refused before its body is read
            self.set_header("Connection", "close")
        told = {404: f"there is no page {self.request.path[:80]!r}", 405: f"expected {self.METHOD}"}
        self.finish_json({"error": told.get(status_code, self._reason)})

    METHOD = "GET"

    def on_finish(self) -> None:
        """Count the answer."""
        self.predictor.metrics.answered(self.get_status())

    def set_default_headers(self) -> None:
        """No cache may keep an answer."""
        self.set_header("Cache-Control", "no-store")


class Missing(Page):
    """Every path that is no page: 404, whatever the method."""

    def _absent(self) -> None:
        raise web.HTTPError(404)

    # Not in prepare(): a body that is still on its way would cost the connection.
    get = head = post = put = patch = delete = options = _absent


class Health(Page):
    """``/healthz``: whether the service takes requests."""

    def get(self) -> None:
        """200, or 503 while it stops."""
        self.set_status(503 if self.predictor.stopping else 200)
        self.finish_json({"status": "stopping" if self.predictor.stopping else "ok"})


class MetricsPage(Page):
    """``/metrics``: what Prometheus reads."""

    def get(self) -> None:
        """The counters and gauges as text."""
        self.set_header("Content-Type", CONTENT_TYPE)
        self.finish(self.predictor.metrics.text(self.predictor.gauges()))


class Predict(Page):
    """``/predict``: one image in, one prediction out."""

    METHOD = "POST"

    def initialize(self, predictor: Predictor, open_requests: "OpenRequests") -> None:  # type: ignore[override]
        """As of every page, and the clock of the body starts."""
        super().initialize(predictor)
        self._open = open_requests
        self._open.requests.add(self)
        self._chunks: list[bytes] = []
        self._bytes = 0
        self._refusal: Refusal | None = None
        self._prediction: Prediction | None = None
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(predictor.limits.body_timeout_s, self._too_slow)

    def data_received(self, chunk: bytes) -> None:
        """Keep the body within the caps of one and of all; what is above is read and dropped, then refused."""
        if self._refusal is not None:
            super().data_received(chunk)
        elif self._bytes + len(chunk) > self.predictor.limits.body_bytes:
            self._forget(self.too_large())
        elif not self._open.receive(len(chunk)):
            self._forget(Refusal(503, "too many bodies are being received: come back later", 1))
        else:
            self._chunks.append(chunk)
            self._bytes += len(chunk)

    async def post(self) -> None:
        """The body is whole: admit it, wait for its prediction, answer."""
        self._timer.cancel()
        try:
            if self._refusal is not None:
                raise self._refusal
            _check_type(self.request.headers)
            self._prediction = self.predictor.begin(b"".join(self._chunks))
            self._forget(None)
            answer = await self._prediction.answer()
        except Refusal as refusal:
            self.refuse(refusal)
        else:
            self.predictor.metrics.latency(answer.latency_s)
            self.finish_json(_as_json(answer, self.get_query_argument("logits", "0") == "1"))

    @property
    def admitted(self) -> bool:
        """Whether it has a place in the queue or in a batch."""
        return self._prediction is not None

    def on_connection_close(self) -> None:
        """The client went away: its place is given back."""
        super().on_connection_close()
        self._done()
        if self._prediction is not None:
            self._prediction.leave()

    def on_finish(self) -> None:
        """Counted, and no longer open."""
        super().on_finish()
        self._done()

    def _done(self) -> None:
        self._timer.cancel()
        self._forget(None)
        self._open.requests.discard(self)

    def _forget(self, refusal: Refusal | None) -> None:
        """Let the body go, and give back its share of what may be received at one time."""
        self._open.receive(-self._bytes)
        self._chunks, self._bytes = [], 0
        self._refusal = self._refusal or refusal

    def _too_slow(self) -> None:
        limit_s = self.predictor.limits.body_timeout_s
        self.set_header("Connection", "close")
        self.refuse(Refusal(408, f"the body did not arrive within {limit_s:g} s: send it faster"))


def _check_type(headers: HTTPHeaders) -> None:
    """A browser's form wraps the file into parts, a coding makes another body of it; other types are let through."""
    if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "the body has a content encoding: expected the bytes of the image as they are")
    if headers.get("Content-Type", "").strip().lower().startswith("multipart/"):
        raise Refusal(415, "the body is a form: expected the bytes of the image alone (curl --data-binary @FILE)")


def _as_json(answer: Answer, logits: bool) -> dict[str, Any]:
    return {
        "class": answer.label,
        **({"logits": answer.logits} if logits else {}),
        "latency_ms": {part: round(1e3 * seconds, 4) for part, seconds in answer.latency_s.items()},
        "batch_size": answer.batch_size,
    }
