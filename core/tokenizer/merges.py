"""Byte-pair merging: how it is done, and which of a tokenizer's merges can ever be done.

A merge joins two neighbouring tokens. Of all the merges possible in a piece, the one that stands first in
the list is done first, leftmost first. A list may hold merges that never come to pass: in "abc" the merge
(a, bc) is out of reach if (a, b) stands before (b, c). tiktoken knows a token by its bytes only and would
join "a" and "bc" all the same, so such merges must not be among those it is given.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

T = TypeVar("T")

Merge = tuple[int, int, int]
"""Two tokens and what joining them gives, as ids."""


def merge_tokens(tokens: Sequence[T], join: Callable[[T, T], tuple[int, T] | None]) -> list[T]:
    """Join neighbours among *tokens* until none can be joined; O(n log n).

    *join* tells what two neighbours become and at which rank, None if they stay; the lowest rank goes first.
    """
    left_of = list(range(-1, len(tokens) - 1))
    right_of = list(range(1, len(tokens) + 1))
    alive: list[T | None] = [*tokens, None]  # None: joined to its left neighbour, or the end

    def join_at(place: int) -> tuple[int, T] | None:
        left, right = alive[place], alive[right_of[place]]
        return None if left is None or right is None else join(left, right)

    queue = [(found[0], place) for place in range(len(tokens)) if (found := join_at(place))]
    heapify(queue)
    while queue:
        rank, place = heappop(queue)
        found = join_at(place)
        if found is None or found[0] != rank:
            continue  # one of the two has been joined to another in the meantime
        gone = right_of[place]
        alive[place], alive[gone] = found[1], None
        right_of[place] = following = right_of[gone]
        if following < len(tokens):
            left_of[following] = place
        for changed in (left_of[place], place):
            if changed >= 0 and (found := join_at(changed)):
                heappush(queue, (found[0], changed))
    return [token for token in alive if token is not None]


def possible_merges(merges: Sequence[Merge], symbols: Iterable[int]) -> dict[int, int]:
    """Return the tokens that *merges* can make out of *symbols*, each with its merge's place in the list.

    Merging by these places, whichever two tokens a token's bytes come from, is merging by the list.
    """
    history = _History(merges, symbols)
    early = [merge for place, merge in enumerate(merges) if not history.add(place, merge)]
    # Merges that stand before those of their own parts: no training leaves any, except to no effect.
    while any([history.try_out(merge) for merge in early]):
        pass
    return {token: place for token, place in history.made.items() if place >= 0}


class _History:
    """How each token comes to be: by which merge, out of which two."""

    def __init__(self, merges: Sequence[Merge], symbols: Iterable[int]) -> None:
        self.made = dict.fromkeys(symbols, -1)  # token: the place of its merge
        self._halves: dict[int, tuple[int, int]] = {}
        # Of a merge that is listed twice the reference knows the last place only.
        self._places = {(left, right): place for place, (left, right, _) in enumerate(merges)}
        self._merges = merges

    def add(self, place: int, merge: Merge) -> bool:
        """Add what *merge* makes, if it does; False if its parts are not made by merges before it."""
        left, right, token = merge
        if left not in self.made or right not in self.made:
            return False
        if token not in self.made and self._places[left, right] == place and self._is_reached(left, right):
            self.made[token], self._halves[token] = place, (left, right)
        return True

    def _is_reached(self, left: int, right: int) -> bool:
        """Tell whether nothing joins bytes of *left* to bytes of *right* before the two are complete.

        Takes the merges that made the two back, latest first (of equal ones the right one is later), and
        looks at each moment for a merge across the border that would have been done before the next one. The
        method is that of ``is_valid_token_pair`` in the Rust crate ``bpe`` (github.com/github/rust-gems).
        """
        made, halves, places = self.made, self._halves, self._places
        left_place, right_place = made[left], made[right]
        while left_place >= 0 or right_place >= 0:
            if left_place > right_place:
                limit, left = left_place, halves[left][1]
                left_place = made[left]
            else:
                limit, right = right_place + 1, halves[right][0]
                right_place = made[right]
            if places.get((left, right), limit) < limit:
                return False
        return True

    def try_out(self, merge: Merge) -> bool:
        """Add what *merge* makes, if doing all other merges among that token's symbols leads up to it."""
        left, right, token = merge
        if token in self.made or left not in self.made or right not in self.made:
            return False

        def join(first: int, second: int) -> tuple[int, int] | None:
            place = self._places.get((first, second))
            if place is None or (joined := self._merges[place][2]) == token:
                return None
            return place, joined

        if merge_tokens([*self._symbols(left), *self._symbols(right)], join) != [left, right]:
            return False
        self.made[token], self._halves[token] = self._places[left, right], (left, right)
        return True

    def _symbols(self, token: int) -> Iterator[int]:
        waiting = [token]
        while waiting:
            token = waiting.pop()
            if token in self._halves:
                waiting += reversed(self._halves[token])
            else:
                yield token
