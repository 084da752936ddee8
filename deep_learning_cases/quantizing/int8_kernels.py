"""Which library really executes a quantized network's int8 layers: counted in one pass, not taken from a setting.

PyTorch's engine setting says who packs the weights.  The engine "x86" then chooses between FBGEMM and oneDNN layer by
layer, so the setting alone does not tell what ran.  oneDNN reports every primitive it executes; the int8 layers that
it does not report were executed by the engine's own library.
"""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from deep_learning_cases.errors import MeasurementError
from deep_learning_cases.models.network import import_torch

__all__ = ["count", "refuse_other"]

_INT8_LINE = re.compile(r",exec,cpu,(?:convolution|matmul|inner_product),.*?src:[us]8:.*?wei:s8:")
_OWN_LIBRARY = {"x86": "fbgemm", "fbgemm": "fbgemm", "qnnpack": "qnnpack", "onednn": "onednn"}


def count(model: Any, batch: Any, backend: str) -> dict[str, int]:
    """How many int8 layers each library executed in one pass of ``batch``: {"onednn": 2, "fbgemm": 2} for example.

    Call inside :func:`torch_quantization.using`.  Redirects standard output for the time of the pass, as oneDNN writes
    its report there.  MeasurementError where oneDNN reports more int8 layers than the network has.
    """
    torch = import_torch()
    layers = sum("quantized" in type(layer).__module__ and hasattr(layer, "weight") for layer in model.modules())

    def once() -> None:
        verbose = torch.backends.mkldnn
        with torch.inference_mode(), verbose.verbose(verbose.VERBOSE_ON):
            model(batch)

    with torch.inference_mode():
        model(batch)  # the first pass also converts weights, which is not what is counted
    onednn = len(_INT8_LINE.findall(_standard_output(once))) if torch.backends.mkldnn.is_available() else 0
    if onednn > layers:
        raise MeasurementError(f"oneDNN reports {onednn} int8 layers of {layers}: expected no more than there are")
    ran = {"onednn": onednn, _OWN_LIBRARY[backend]: layers - onednn} if backend != "onednn" else {"onednn": onednn}
    return {library: number for library, number in ran.items() if number}


def refuse_other(ran: dict[str, int], backend: str, layers: int | None = None) -> None:
    """MeasurementError if a library executed layers that the backend asked for does not use.

    "x86" may use FBGEMM and oneDNN; every other backend stands for itself alone.
    """
    allowed = {"fbgemm", "onednn"} if backend == "x86" else {backend}
    others = sorted(set(ran) - allowed)
    if others or not ran or (layers is not None and sum(ran.values()) != layers):
        found = ", ".join(f"{library}: {number}" for library, number in ran.items()) or "none"
        raise MeasurementError(
            f"the int8 layers ran on {found}: expected only {' and '.join(sorted(allowed))} for {backend!r}; "
            "choose another backend"
        )


def _standard_output(work: Callable[[], object]) -> str:
    """What ``work`` writes to the process's standard output, libraries in C included."""
    flush: Any = getattr(ctypes.CDLL(None), "fflush", None) if os.name == "posix" else None
    with tempfile.TemporaryFile() as caught:
        sys.stdout.flush()
        if flush:
            flush(None)
        kept = os.dup(1)
        os.dup2(caught.fileno(), 1)
        try:
            work()
        finally:
            if flush:
                flush(None)
            os.dup2(kept, 1)
            os.close(kept)
        caught.seek(0)
        return caught.read().decode("utf-8", "replace")
