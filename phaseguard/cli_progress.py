"""Progress on stderr for commands that take longer than a moment."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from phaseguard.cli_print import print_status


class Steps:
    """Steps of known number: a bar on a terminal, elsewhere a line every so many steps, or nothing.

    Args:
        total: number of steps.
        every: steps between two lines elsewhere than on a terminal; 0 writes none.
        unit: what a step is, such as ``steps`` or ``trained``.
    """

    def __init__(self, total: int, *, every: int = 0, unit: str = "done") -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        console = Console(stderr=True)
        self._total, self._every, self._unit = total, 0 if console.is_terminal else every, unit
        self._step = 0
        self._bar = Progress(
            TextColumn("{task.completed:.0f} of {task.total:.0f} {task.fields[unit]}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total, unit=unit)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def done(self, text: str) -> None:
        """One more step is done; ``text`` says which, or how far it brought us."""
        self.reached(self._step + 1, text)

    def reached(self, step: int, text: str) -> None:
        """So many steps are done, some perhaps in an earlier run."""
        further, self._step = step != self._step, step
        self._bar.update(self._task, completed=step, description=text)
        if self._every and further and step % self._every == 0:
            print_status(f"{step} of {self._total} {self._unit}: {text}")
