"""The program of a job's process: ``python -P _child.py FOLDER``.

It ends with its parent. From the first moment on: the library takes a while to import,
so this begins with nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import threading


def _end_with_parent(folder: str) -> None:
    """Wait for the end of the pipe from the parent, which only its death brings."""
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _end_soon_after_parent() -> None:
    """Have the system end this process, should the thread above not come to it.

    Compiled code may hold the interpreter's lock for as long as it likes, and then no
    thread and no handler of Python runs. So the parent's death sends SIGHUP, whose
    handler is the C function ``alarm`` itself: called with the number of the signal,
    it lets SIGALRM end the process that many seconds later, which is one.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.signal.restype = ctypes.c_void_p
        alarm = ctypes.cast(libc.alarm, ctypes.c_void_p)
        libc.signal(signal.SIGHUP, alarm)
        libc.prctl(1, ctypes.c_ulong(signal.SIGHUP))  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return  # another C library: the thread alone then


def _read_line() -> bytes:
    """Return what the parent says; nothing if it is dead already."""
    pieces = []
    # Without a buffer: what comes after the line is for the thread.
    while piece := os.read(0, 65536):
        pieces.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def main(folder: str) -> None:
    """Do the job that the parent tells; leave the result in the folder."""
    _end_soon_after_parent()
    order = _read_line()
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    from clml.experiments._cell import run_in_child

    run_in_child(order, folder)


if __name__ == "__main__":
    main(sys.argv[1])
