"""A deterministic scheduler: real threads that run one at a time and hand over at locks and waits, chosen by a seed.

A module under test gets `Scheduler.threading()` instead of `threading`. The order in which its threads run then depends
on the seed alone, so that a failing run can be repeated.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

HANDOVER_TIMEOUT = 60.0
"""Seconds after which a run is aborted if a thread does not hand over."""


class Deadlock(Exception):
    """All threads are waiting."""


class Stopped(BaseException):
    """Ends the threads of an aborted run."""


class Task:
    """A thread that runs while it has the baton."""

    def __init__(self, scheduler: Scheduler, name: str, work: Callable[[], Any]) -> None:
        self.name, self.done, self.error = name, False, None
        self.ready: Callable[[], bool] | None = None  # the condition it waits for
        self.baton = threading.Semaphore(0)
        self._scheduler, self._work = scheduler, work
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._scheduler.local.task = self
        self.baton.acquire()
        try:
            if not self._scheduler.stopped:
                self._work()
        except Stopped:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        self._scheduler.hand_over()


class Scheduler:
    """Chooses the next thread whenever one hands over."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.local = threading.local()
        self.tasks: list[Task] = []
        self.trace: list[str] = []  # names of the chosen threads, in order
        self.stopped = False
        self._over = threading.Event()
        self._failure: BaseException | None = None

    def spawn(self, name: str, work: Callable[[], Any]) -> Task:
        """Create a thread, which runs once it is chosen."""
        task = Task(self, name, work)
        self.tasks.append(task)
        return task

    def run(self) -> None:
        """Run the threads until all have ended; raise the exception of a thread, or `Deadlock`."""
        self.hand_over()
        if not self._over.wait(HANDOVER_TIMEOUT):
            self._failure = Deadlock(f"{self.trace[-1]} does not hand over")
        self.stopped = True
        for task in self.tasks:
            task.baton.release()
        if self._failure is not None:
            raise self._failure

    def pause(self, ready: Callable[[], bool] | None = None) -> None:
        """Hand over; return at any later time, or once `ready` holds. Does nothing outside of the threads."""
        task: Task | None = getattr(self.local, "task", None)
        if task is None:
            return
        if self.stopped:
            raise Stopped
        task.ready = ready
        self.hand_over(task)
        if self.stopped:
            raise Stopped

    def hand_over(self, task: Task | None = None) -> None:
        """Choose the next thread. The task that hands over, if any, returns when it is chosen again."""
        if self.stopped:
            return
        failed = next((each.error for each in self.tasks if each.error is not None), None)
        waiting = [each for each in self.tasks if not each.done]
        runnable = [each for each in waiting if each.ready is None or each.ready()]
        if failed is not None or not runnable:
            if failed is None and waiting:
                failed = Deadlock("all wait: " + ", ".join(each.name for each in waiting))
            self._failure, self.stopped = failed, True
            self._over.set()
            if task is not None:
                raise Stopped
            return
        chosen = self.random.choice(runnable)
        self.trace.append(chosen.name)
        if chosen is task:
            return
        chosen.baton.release()
        if task is not None and not task.baton.acquire(timeout=HANDOVER_TIMEOUT):
            raise Stopped

    def threading(self) -> Any:
        """Create the replacement for the module `threading`."""
        return SimpleNamespace(
            Lock=lambda: Lock(self),
            RLock=lambda: RLock(self),
            Condition=lambda lock=None: Condition(self, lock),
            Thread=lambda **arguments: Thread(self, **arguments),
            local=threading.local,
            get_ident=threading.get_ident,
        )


class Lock:
    """Replacement for `threading.Lock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self.held = scheduler, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._scheduler.pause()
        if self.held and blocking:
            self._scheduler.pause(lambda: not self.held)
        if self.held:
            return False
        self.held = True
        return True

    def release(self) -> None:
        assert self.held
        self.held = False
        if not self._scheduler.stopped:
            self._scheduler.pause()

    def locked(self) -> bool:
        self._scheduler.pause()
        return self.held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()


class RLock:
    """Replacement for `threading.RLock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._owner, self._count = scheduler, 0, 0

    def acquire(self) -> bool:
        thread = threading.get_ident()
        self._scheduler.pause()
        if self._owner not in (0, thread):
            self._scheduler.pause(lambda: self._owner == 0)
        self._owner, self._count = thread, self._count + 1
        return True

    def release(self) -> None:
        assert self._is_owned()
        self._count -= 1
        if not self._count:
            self._owner = 0
        if not self._scheduler.stopped:
            self._scheduler.pause()

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()


class Condition:
    """Replacement for `threading.Condition`. A wait with a timeout may time out at any time."""

    def __init__(self, scheduler: Scheduler, lock: Any = None) -> None:
        self._scheduler, self._lock = scheduler, lock or Lock(scheduler)
        self._notified = 0

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *_: Any) -> None:
        self._lock.__exit__()

    def wait(self, timeout: float | None = None) -> bool:
        before = self._notified
        self._lock.release()
        self._scheduler.pause(None if timeout is not None else lambda: self._notified > before)
        self._lock.acquire()
        return self._notified > before

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        while not (result := predicate()):
            self.wait(timeout)
            if timeout is not None:
                return predicate()
        return result

    def notify(self, n: int = 1) -> None:
        self._notified += 1

    notify_all = notify


class Thread:
    """Replacement for `threading.Thread`."""

    def __init__(
        self, scheduler: Scheduler, target: Callable[[], Any], name: str = "thread", daemon: bool = True
    ) -> None:
        self._scheduler, self._name, self._work = scheduler, name, target

    def start(self) -> None:
        self._task = self._scheduler.spawn(self._name, self._work)

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.pause(lambda: self._task.done)
