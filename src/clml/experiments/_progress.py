"""Telling how far an experiment is: a bar in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Self

from ._schedule import Cell


class Progress:
    """How many jobs are finished, which run, and about how long the rest takes.

    Parameters
    ----------
    shown : bool
    total : int
        Jobs of the plan.
    """

    def __init__(self, shown: bool, total: int) -> None:
        self.shown = shown
        self.total = total
        self.finished = 0
        self.failed = 0
        self.ran = 0
        self._began = time.monotonic()
        self._running: list[str] = []
        self._lock = threading.Lock()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self.shown and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.BarColumn(bar_width=20),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[left]}"),
                progress.TextColumn("{task.description}", markup=False),
                console=Console(stderr=True, highlight=False),
            )
            self._task = self._bar.add_task(
                "", total=self.total, completed=self.finished, left=""
            )
            self._bar.start()
        elif self.shown and self.finished:
            self._line(f"{self.finished} of {self.total} jobs were finished before")
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def skip(self) -> None:
        """Count a job that was finished elsewhere."""
        with self._lock:
            self.finished += 1
            self._draw()

    def begin(self, cell: Cell) -> None:
        """Say that a job is running."""
        with self._lock:
            self._running.append(str(cell))
            self._draw()

    def end(self, cell: Cell, result: Mapping[str, Any], seconds: float) -> None:
        """Say how a job ended."""
        with self._lock:
            self.finished += 1
            self.ran += 1
            self._running.remove(str(cell))
            is_done = result["status"] == "done"
            self.failed += not is_done
            words = "done" if is_done else f"FAILED: {result.get('reason')}"
            line = f"{cell}: {words} ({seconds:.1f} s)"
            if self._bar is not None:
                self._draw()
                if not is_done:
                    self._bar.console.print(line, markup=False)
            elif self.shown:
                self._line(f"{self.finished}/{self.total} {line}, {self.remaining()}")

    def remaining(self) -> str:
        """Return in words how long the rest takes if it goes on like this."""
        if not self.ran:
            return ""
        each = (time.monotonic() - self._began) / self.ran
        seconds = round(each * max(self.total - self.finished, 0))
        hours, minutes = seconds // 3600, seconds // 60 % 60
        if hours:
            return f"about {hours} h {minutes} min left"
        if seconds >= 60:
            return f"about {minutes} min {seconds % 60} s left"
        return f"about {seconds} s left"

    def _draw(self) -> None:
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=self.finished,
                left=self.remaining(),
                description="; ".join(self._running),
            )

    def _line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
