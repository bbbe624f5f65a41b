"""The controls of "Periodic Weak Spots" (arXiv:2609.36322) on small models: which kernel has which period.

Every model that was trained on ask-anything filler with one-token answers is asked at its training length and
at four times that length. The first model of each kind also gives accuracy at 2 and 8 times the length, the
filler probe and gate cycling; full attention also carries the schemes that are applied at inference.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeVar

from phaseguard.errors import InputError
from phaseguard.lab.spec import Spec
from phaseguard.lab.store import find_file
from phaseguard.lab.study import LEAST, Study, Subject, examine
from phaseguard.lab.tasks import Task

QUESTIONS = 2400
_Done = TypeVar("_Done")


def subjects(manifest: Mapping[str, Mapping[str, Any]]) -> tuple[Subject, ...]:
    """The models of a manifest that were trained on ask-anything filler, one-token answers among them.

    Args:
        manifest: entries by name, as :func:`phaseguard.lab.store.shipped` returns.

    Returns:
        Full attention first, then by stride, window, gate and seed.

    Raises:
        InputError: when there is none, or weights are not those of the manifest.

    >>> from phaseguard.lab.store import shipped
    >>> subjects(shipped())[0].name
    'full-s0'
    """
    found = [
        Subject(name, find_file(name), Spec(**entry["spec"]), entry["seed"], entry.get("echoes", 0))
        for name, entry in manifest.items()
        if _is_plain([Task(**task) for task in entry["tasks"]])
    ]
    if not found:
        raise InputError("No model was trained on ask-anything filler with one-token answers: train one.")
    return tuple(sorted(found, key=lambda one: (*_order(one.spec), one.seed)))


def _is_plain(tasks: Sequence[Task]) -> bool:
    shapes = {(task.setting, task.key_tokens, task.value_tokens) for task in tasks}
    return ("ask", 1, 1) in shapes and {shape[0] for shape in shapes} == {"ask"}


def _order(spec: Spec) -> tuple[int, ...]:
    gates = ("channel", "scalar", "uniform")
    return spec.stride, spec.window, gates.index(spec.gate), int(not spec.bias), int(spec.rope)


def leading(found: Iterable[Subject]) -> tuple[Subject, ...]:
    """The first model of each kind, that is of each spec.

    >>> from phaseguard.lab.store import shipped
    >>> names = [one.name for one in leading(subjects(shipped()))]
    >>> "csa4-s0" in names, "csa4-s1" in names
    (True, False)
    """
    kinds: dict[Spec, Subject] = {}
    for subject in found:
        kinds.setdefault(subject.spec, subject)
    return tuple(kinds.values())


def reproduce(
    found: Sequence[Subject],
    *,
    questions: int = QUESTIONS,
    workers: int = 2,
    report: Callable[[str], None] | None = None,
) -> tuple[Study, ...]:
    """Examine models, in processes of their own.

    Args:
        found: the models, as :func:`subjects` gives them.
        questions: least number of questions a row.
        workers: processes; 1 examines in this one.
        report: called with the name of each model when it is done.

    Raises:
        InputError: for fewer questions than phases can be compared with, or no worker.

    >>> from phaseguard.lab.store import shipped
    >>> full = [one for one in subjects(shipped()) if one.name == "csa4-s1"]
    >>> reproduce(full, questions=800, workers=1)[0].rows[0].scan.period
    4
    """
    if questions < LEAST:
        raise InputError(f"questions={questions}: give {LEAST} or more, or phases cannot be compared.")
    leads = leading(found)
    # long jobs first, so that none is left for one process alone
    order = sorted(found, key=lambda subject: subject not in leads)
    jobs = [partial(examine, subject, leads=subject in leads, questions=questions) for subject in order]
    done: dict[Subject, Study] = {}
    for study in run_all(jobs, workers):
        done[study.subject] = study
        if report is not None:
            report(study.subject.name)
    return tuple(done[subject] for subject in found)


def run_all(jobs: Sequence[Callable[[], _Done]], workers: int) -> Iterator[_Done]:
    """Results of calls, each as soon as it is there; more than one worker means processes of their own.

    Args:
        jobs: calls without arguments that can be pickled.
        workers: processes; 1 calls in this one.

    Raises:
        InputError: for no worker.

    >>> list(run_all([partial(divmod, 7, 2)], 1))
    [(3, 1)]
    """
    if workers < 1:
        raise InputError(f"workers={workers}: give at least one.")
    if workers == 1:
        for job in jobs:
            yield job()
        return
    # spawned, not forked: threads of numpy and torch do not survive a fork
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        started: list[Future[_Done]] = [pool.submit(job) for job in jobs]
        try:
            for future in as_completed(started):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
