"""Worker processes: started anew (spawn), few tasks in flight, gone as soon as their parent is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

from phaseguard.errors import PhaseGuardError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def run_tasks(work: Callable[[_Task], _Result], tasks: Iterable[_Task], jobs: int) -> Generator[_Result]:
    """Results of the tasks as they come, from ``jobs`` processes; from this one when it is 1.

    Args:
        work: a picklable function of one task.
        tasks: picklable; taken when there is room.
        jobs: how many processes.

    Raises:
        PhaseGuardError: when a process is killed.
    """
    if jobs == 1:
        yield from map(work, tasks)
        return
    waiting, running = iter(tasks), set[Future[_Result]]()
    with _workers(jobs) as pool:
        try:
            while True:
                for task in islice(waiting, 2 * jobs - len(running)):
                    with _interrupts_blocked():
                        running.add(pool.submit(work, task))
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    running.remove(future)
                    yield future.result()
        except BrokenProcessPool as fault:
            raise PhaseGuardError(
                "A worker process was killed, perhaps for lack of memory. What is finished is kept: run it "
                "again, with fewer jobs."
            ) from fault


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end when this block does, and whenever this process ends, in whatever way."""
    context = get_context("spawn")
    ours, alive = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(ours,))
    try:
        yield pool
    finally:
        alive.close()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that are started here are not interrupted by Ctrl-C: this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: Connection) -> None:
    """In a worker: leave with the parent, and read with one thread, there being a process a core."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: Connection) -> None:
    try:
        parent.recv()  # nothing is ever sent: it ends when the other end is closed
    except EOFError:
        os._exit(1)
