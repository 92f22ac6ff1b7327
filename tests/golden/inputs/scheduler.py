"""Plans jobs on machines, the earliest deadline first."""

import heapq
from dataclasses import dataclass, field


@dataclass(order=True)
class Job:
    """One job."""

    deadline: float
    name: str = field(compare=False)
    hours: float = field(compare=False, default=1.0)


class Scheduler:
    """Assigns jobs to the machine that is free first."""

    def __init__(self, machines: int) -> None:
        if machines < 1:
            raise ValueError("at least one machine is needed")
        self._free = [(0.0, index) for index in range(machines)]
        self._jobs: list[Job] = []

    def add(self, job: Job) -> None:
        """Put a job on the queue."""
        # The heap keeps the earliest deadline at its root.
        heapq.heappush(self._jobs, job)

    def plan(self) -> list[tuple[str, int, float]]:
        """Name, machine and start of every job."""
        planned = []
        while self._jobs:
            job = heapq.heappop(self._jobs)
            start, machine = heapq.heappop(self._free)
            planned.append((job.name, machine, start))
            heapq.heappush(self._free, (start + job.hours, machine))
        return planned

    def late(self) -> list[str]:
        """Names of the jobs that miss their deadline."""
        jobs = {job.name: job for job in self._jobs}
        return [
            name
            for name, _, start in self.plan()
            if start + jobs[name].hours > jobs[name].deadline
        ]


def utilisation(plan: list[tuple[str, int, float]], hours: dict[str, float]) -> float:
    """Busy share of the time until the last job ends."""
    if not plan:
        return 0.0
    end = max(start + hours[name] for name, _, start in plan)
    machines = {machine for _, machine, _ in plan}
    return sum(hours[name] for name, _, _ in plan) / (end * len(machines))
