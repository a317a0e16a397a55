"""Boxes on a dask cluster: its workers read the source and write the target themselves."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..core.parallel import Progress
from .errors import UsageError

if TYPE_CHECKING:
    from ..core.blocks import Index
    from ..io.regions import Target
    from .boxes import BoxPlan

_PATIENCE = 20  # seconds for the scheduler to answer, and for a first worker to be there


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers and has workers."""

    client: Any

    def run(
        self, plan: BoxPlan, target: Target, todo: list[Index], progress: Progress | None
    ) -> None:
        """Do the boxes.  What a lost worker had is done again, by another, with the same bits.

        BoxPlan and target are the result of a task, which can be done again too.  They travel as bytes:
        workers open the files, the scheduler need not see them.
        """
        from distributed import as_completed

        shared = self.client.submit(pickle.loads, pickle.dumps((plan, target)), pure=False)
        outers: dict[Index, Any] = {}
        writes = []
        for number, index in enumerate(todo):
            around = plan.grid.neighbours(index)
            own = {"pure": False, "priority": -number}
            for other in around:
                if other not in outers:
                    outers[other] = self.client.submit(_outer, shared, other, **own)
            parts = [outers[other] for other in around]
            writes.append(self.client.submit(_write, shared, index, parts, **own))
        outers.clear()
        parts = []  # the cluster forgets an outer box once all that need it are written
        finished = as_completed(writes, loop=self.client.loop)
        try:
            for done, future in enumerate(finished, start=1):
                future.result()
                if progress is not None:
                    progress(done / len(writes), "boxes")
        except BaseException:
            self.client.cancel(writes)
            raise


def _outer(shared: tuple[BoxPlan, Target], index: Index) -> Any:
    return shared[0].outer(index)


def _write(shared: tuple[BoxPlan, Target], index: Index, parts: list[Any]) -> None:
    plan, target = shared
    plan.write(target, index, parts)


@contextmanager
def connected(address: str) -> Iterator[Cluster | None]:
    """Give a cluster that is ready, None without an address; say what is wrong with it in a line."""
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "a cluster needs dask: pip install 'symsmooth[dask]'", "scheduler"
        ) from error
    try:
        place = urlsplit(address)
        socket.create_connection((place.hostname or "", place.port or 0), _PATIENCE).close()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no dask scheduler answers at {address}; start one with `dask scheduler` and give "
            "its address as tcp://HOST:PORT"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise UsageError(
                f"the cluster at {address} has no worker; start some with `dask worker {address}`"
            ) from error
        yield Cluster(client)
