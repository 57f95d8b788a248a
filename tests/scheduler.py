"""A deterministic scheduler: real threads that run one at a time, handing over at locks, waits and calls, by a seed.

A module that is tested gets `Scheduler.threading()` in the place of `threading`. Whatever its threads do then happens
in one order, which depends on the seed alone: a run that fails can be run again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

PATIENCE = 60.0
"""Seconds after which a thread that does not hand over is given up."""


class Deadlock(Exception):
    """All threads wait."""


class Stopped(BaseException):
    """Ends the threads of a run that is given up."""


class Task:
    """A thread that runs while it has the baton."""

    def __init__(self, scheduler: Scheduler, name: str, work: Callable[[], Any]) -> None:
        self.name, self.done, self.error = name, False, None
        self.ready: Callable[[], bool] | None = None  # what it waits for
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
    """Chooses, whenever a thread hands over, the one that goes on."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.local = threading.local()
        self.tasks: list[Task] = []
        self.trace: list[str] = []  # who went on, each time
        self.stopped = False
        self._over = threading.Event()
        self._failure: BaseException | None = None

    def spawn(self, name: str, work: Callable[[], Any]) -> Task:
        """Have something done by a thread of its own, from whenever it is chosen."""
        task = Task(self, name, work)
        self.tasks.append(task)
        return task

    def run(self) -> None:
        """Let the threads run until all have ended; raise what one of them raised, or that they wait for each other."""
        self.hand_over()
        if not self._over.wait(PATIENCE):
            self._failure = Deadlock(f"{self.trace[-1]} does not hand over")
        self.stopped = True
        for task in self.tasks:
            task.baton.release()
        if self._failure is not None:
            raise self._failure

    def pause(self, ready: Callable[[], bool] | None = None) -> None:
        """Let others go on; come back at any time, or once something is so. Does nothing outside of the threads."""
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
        """Choose who goes on. The task that hands over, if there is one, returns when it is chosen."""
        if self.stopped:
            return
        failed = next((one.error for one in self.tasks if one.error is not None), None)
        waiting = [one for one in self.tasks if not one.done]
        able = [one for one in waiting if one.ready is None or one.ready()]
        if failed is not None or not able:
            if failed is None and waiting:
                failed = Deadlock("all wait: " + ", ".join(one.name for one in waiting))
            self._failure, self.stopped = failed, True
            self._over.set()
            if task is not None:
                raise Stopped
            return
        chosen = self.random.choice(able)
        self.trace.append(chosen.name)
        if chosen is task:
            return
        chosen.baton.release()
        if task is not None and not task.baton.acquire(timeout=PATIENCE):
            raise Stopped

    def threading(self) -> Any:
        """What a module gets in the place of `threading`."""
        return SimpleNamespace(
            Lock=lambda: Lock(self),
            RLock=lambda: RLock(self),
            Condition=lambda lock=None: Condition(self, lock),
            Thread=lambda **given: Thread(self, **given),
            local=threading.local,
            get_ident=threading.get_ident,
        )

    def in_background(self, work: Callable[[], Any]) -> Future:
        """Have something done by a thread of its own; what comes of it."""
        future = Future(self)

        def finish() -> None:
            self.pause()
            found = work()
            self.pause()
            future.set(found)

        self.spawn("background", finish)
        return future


class Lock:
    """A `threading.Lock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._held = scheduler, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._scheduler.pause()
        if self._held and blocking:
            self._scheduler.pause(lambda: not self._held)
        if self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        assert self._held
        self._held = False
        if not self._scheduler.stopped:
            self._scheduler.pause()

    def locked(self) -> bool:
        self._scheduler.pause()
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()


class RLock:
    """A `threading.RLock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._owner, self._count = scheduler, 0, 0

    def acquire(self) -> bool:
        me = threading.get_ident()
        self._scheduler.pause()
        if self._owner not in (0, me):
            self._scheduler.pause(lambda: self._owner == 0)
        self._owner, self._count = me, self._count + 1
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
    """A `threading.Condition`; a wait that may time out does so at any time."""

    def __init__(self, scheduler: Scheduler, lock: Any = None) -> None:
        self._scheduler, self._lock = scheduler, lock or Lock(scheduler)
        self._notified = 0

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *_: Any) -> None:
        self._lock.__exit__()

    def wait(self, timeout: float | None = None) -> bool:
        seen = self._notified
        self._lock.release()
        self._scheduler.pause(None if timeout is not None else lambda: self._notified > seen)
        self._lock.acquire()
        return self._notified > seen

    def wait_for(self, wanted: Callable[[], Any], timeout: float | None = None) -> Any:
        while not (found := wanted()):
            self.wait(timeout)
            if timeout is not None:
                return wanted()
        return found

    def notify(self, n: int = 1) -> None:
        self._notified += 1

    notify_all = notify


class Thread:
    """A `threading.Thread`."""

    def __init__(
        self, scheduler: Scheduler, target: Callable[[], Any], name: str = "thread", daemon: bool = True
    ) -> None:
        self._scheduler, self._name, self._work = scheduler, name, target

    def start(self) -> None:
        self._task = self._scheduler.spawn(self._name, self._work)

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.pause(lambda: self._task.done)


class Future:
    """What a thread will have found."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._value: Any = None
        self._set = threading.Event()

    def set(self, value: Any) -> None:
        self._value = value
        self._set.set()

    def done(self) -> bool:
        return self._set.is_set()

    def result(self) -> Any:
        self._scheduler.pause(self.done)
        assert self._set.wait(PATIENCE)  # of a thread that is not one of these
        return self._value
