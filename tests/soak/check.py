"""The rules that the logs of the holders and the history of their leases must follow together.

Each id is unique if each holder makes an id once, and no two holders stamp the same second with the
same node id. So the ids themselves need not be kept: memory grows with the number of seconds.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HISTORY = """
create table history (
    change integer primary key, node_id integer, start integer, end_exclusive integer, token blob
);
create trigger first_lease after insert on node begin
    insert into history (node_id, start, end_exclusive, token)
    values (new.node_id, new.start, new.end_exclusive, new.token);
end;
create trigger next_lease after update on node begin
    insert into history (node_id, start, end_exclusive, token)
    values (new.node_id, new.start, new.end_exclusive, new.token);
end;
"""
"""Makes a store note every change of a lease, in the same transaction."""

Stamps = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The node ids and the unix seconds of ids."""

SECOND_BITS = 40

Change = tuple[int, int, int, bytes | None]
"""A row of the history: node id, start, end_exclusive, token."""


@dataclass
class Lease:
    """A granted lease, with its final end."""

    start: int
    end_exclusive: int
    token: bytes | None
    holder: int | None = None


@dataclass
class Verdict:
    """The number of ids and leases, and the number of each kind of fault in them."""

    ids: int = 0
    leases: int = 0
    handed_over: int = 0
    """How often a node id went from one holder to another."""
    manual: int = 0
    """How often a manually assigned node id did."""
    repeated_ids: int = 0
    """Ids that one holder made again."""
    shared_seconds: int = 0
    """Seconds of a node id that another holder had stamped."""
    overlaps: int = 0
    """Leases that began before the previous one had ended, and other forbidden changes."""
    uncovered: int = 0
    """Seconds of a node id that were stamped outside of all leases, or in another's lease."""

    def is_good(self) -> bool:
        return not (self.repeated_ids or self.shared_seconds or self.overlaps or self.uncovered)


class Checker:
    """Takes the ids of one holder after another."""

    def __init__(self, stamps: Callable[[NDArray[np.int64]], Stamps]) -> None:
        self._stamps = stamps
        self._holders: dict[tuple[int, int], int] = {}
        """The holder that has stamped a node id and second."""
        self._verdict = Verdict()

    def add(self, holder: int, ids: NDArray[np.int64]) -> None:
        """Takes all ids of a holder that has ended."""
        node_ids, seconds = self._stamps(ids)
        # As one number: numpy takes minutes for millions of pairs.
        stamps = np.unique(node_ids << SECOND_BITS | seconds)
        self._verdict.ids += len(ids)
        self._verdict.repeated_ids += len(ids) - len(np.unique(ids))
        for stamp in stamps.tolist():
            second = stamp >> SECOND_BITS, stamp & ((1 << SECOND_BITS) - 1)
            first = self._holders.setdefault(second, holder)
            self._verdict.shared_seconds += first != holder

    def judge(self, history: Iterable[Change] | None, manual: Set[int] = frozenset()) -> Verdict:
        """Compares all stamps, except those with manually assigned node ids, with the leases that
        were granted, if those are known.
        """
        verdict = self._verdict
        leases = self._leases(history or ())
        verdict.leases = sum(map(len, leases.values()))
        last: dict[int, int] = {}
        for (node_id, second), holder in sorted(self._holders.items()):
            before = last.setdefault(node_id, holder)
            last[node_id] = holder
            if node_id in manual:
                verdict.manual += before != holder
                continue
            if history is None:
                verdict.handed_over += before != holder
                continue
            of_node = leases[node_id]
            found = bisect(of_node, second, key=lambda lease: lease.start) - 1
            lease = of_node[found] if found >= 0 else Lease(0, 0, None)
            if lease.holder is None and found > 0:
                verdict.handed_over += of_node[found - 1].holder not in (None, holder)
            if lease.holder is None:
                lease.holder = holder
            verdict.uncovered += second >= lease.end_exclusive or lease.holder != holder
        return verdict

    def _leases(self, history: Iterable[Change]) -> dict[int, list[Lease]]:
        """Returns the leases of each node id, by start, without empty ones."""
        leases: dict[int, list[Lease]] = defaultdict(list)
        for node_id, start, end_exclusive, token in history:
            of_node = leases[node_id]
            last = of_node[-1] if of_node else Lease(0, 0, None)
            if token is not None and token != last.token:
                good = last.end_exclusive <= start
                of_node.append(Lease(start, end_exclusive, token))
            else:
                longer = token is not None and last.end_exclusive <= end_exclusive
                shorter = token is None and start <= end_exclusive <= last.end_exclusive
                good = last.token is not None and last.start == start and (longer or shorter)
                last.end_exclusive, last.token = end_exclusive, token
            self._verdict.overlaps += not good
        return leases
