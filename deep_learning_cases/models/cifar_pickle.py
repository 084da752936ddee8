"""Read the pickles of CIFAR-10 without unpickling: a closed list of opcodes, and stand-ins for the three NumPy names.

A pickle is a program.  Those of CIFAR-10 build one dictionary of text, whole numbers, lists and one array of bytes.
Every opcode is checked before any runs, so that nothing else can be asked for, and neither NumPy's nor anybody's code
is called: the array is put together from its bytes afterwards.
"""

import io
import pickle
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import EvidenceError, one_line

__all__ = ["read"]

# What Python 2's and Python 3's picklers write for that structure; nothing that calls, imports or builds by name
# beyond GLOBAL, REDUCE and BUILD, which meet the stand-ins below alone.
_OPCODES = frozenset({
    "PROTO", "STOP", "FRAME", "MARK", "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS",
    "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1",
    "BININT2", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINUNICODE", "SHORT_BINUNICODE",
    "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD",
})  # fmt: skip

_GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}

MAX_OPCODES = 200_000
"""A batch of 10,000 images takes about 40,000: a name and a label each."""


def read(content: bytes, name: str) -> dict[str, Any]:
    """The dictionary in ``content`` with text keys; values are text, whole numbers, lists, or uint8 arrays.

    EvidenceError, naming ``name``, for anything else: other opcodes, other names, other types, damaged bytes.
    """
    try:
        _check_opcodes(content)
        value = _Reader(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(value, dict):
            raise ValueError(f"it holds {type(value).__name__}, not a dictionary")
        return {_text(key): _plain(item) for key, item in value.items()}
    except (ValueError, TypeError, AttributeError, IndexError, KeyError, EOFError, OverflowError,
            MemoryError, RecursionError, pickle.UnpicklingError) as error:  # fmt: skip
        raise EvidenceError(
            f"{name} is not a batch of CIFAR-10 ({one_line(error)}): expected a dictionary of text, numbers, lists and"
            " one uint8 array; download the archive again"
        ) from error


def _check_opcodes(content: bytes) -> None:
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if opcode.name not in _OPCODES:
            raise ValueError(f"its pickle uses {opcode.name}")
        if number >= MAX_OPCODES:
            raise ValueError(f"its pickle has more than {MAX_OPCODES} steps")
        # The memo is a table that grows to the largest index, whatever stands in it.
        if opcode.name in ("BINPUT", "LONG_BINPUT") and int(argument or 0) > MAX_OPCODES:
            raise ValueError(f"its pickle numbers a value {argument}")


class _Array:
    """Stands for an array until its bytes are there."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Dtype:
    """Stands for a dtype; its state (byte order, alignment) does not matter for single bytes."""

    def __init__(self, code: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """Nothing to keep."""


class _ArrayType:
    """Stands for the type that an array's recipe names."""


def _reconstruct(kind: Any, *_: Any) -> _Array:
    if kind is not _ArrayType:
        raise ValueError("it builds an array of an unknown type")
    return _Array()


def _dtype(code: Any, *_: Any) -> _Dtype:
    return _Dtype(code)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _GLOBALS:
            raise ValueError(f"it asks for {module}.{name}"[:80])
        return {"_reconstruct": _reconstruct, "ndarray": _ArrayType, "dtype": _dtype}[name]


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return _bytes_array(value.state)
    if isinstance(value, list):
        return [_plain(item) if not isinstance(item, list) else _refuse(item) for item in value]
    if isinstance(value, bytes | str):
        return _text(value)
    return value if type(value) is int else _refuse(value)


def _bytes_array(state: Any) -> NDArray[np.uint8]:
    if not isinstance(state, tuple) or len(state) != 5:
        raise ValueError("its array has no state of five parts")
    _, shape, dtype, fortran_order, content = state
    if not isinstance(dtype, _Dtype) or dtype.code not in (b"u1", "u1") or fortran_order not in (False, 0):
        raise ValueError("its array is not uint8 in C order")
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape) or len(shape) != 2:
        raise ValueError("its array has no two dimensions")
    if not isinstance(content, bytes) or shape[0] * shape[1] != len(content):
        raise ValueError("its array's shape and bytes disagree")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value if isinstance(value, str) else _refuse(value)


def _refuse(value: Any) -> Any:
    raise ValueError(f"it holds {type(value).__name__}")
