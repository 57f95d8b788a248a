"""Distribution of test files to worker processes that continues when a worker ends, for example at a timeout.

pytest-xdist assigns all files of such a worker again, also those that are complete. A worker that gets a complete file
never reports a result, so it never gets another file, and the run stops without an end.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class CrashTolerantScheduling(LoadFileScheduling):
    """Assign to other workers only the tests that a worker has not run; the one that ended it counts as failed."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Remove a worker; return the test that it was running, if it was running one."""
        files = self.assigned_work.pop(node).items()
        left = [(file, {test: False for test, complete in tests.items() if not complete}) for file, tests in files]
        left = [(file, tests) for file, tests in left if tests]
        if not left:
            return None
        running = next(iter(left[0][1]))
        del left[0][1][running]
        self.workqueue.update((file, tests) for file, tests in left if tests)
        for worker in self.assigned_work:
            self._reschedule(worker)
        return running
