"""The most valuable packing of a knapsack, with several units of each item, compiled.

Of item i between 0 and ``limits[i]`` whole units may be packed, of ``weights[i]`` each, and
``capacity`` in total. The *ratio* of an item is its value per weight, its *rank* is its place in
the order of falling ratios. Packing whole items by rank, and then the fraction of the next one
that the room still takes, gives the *Dantzig bound*: no packing is worth more. Two exact methods
live on it:

1. *Branch and bound*. Take as much as possible of every item by rank, then step back: one unit
   less of the last item that could pay, and as much as possible of those behind it. A packing is
   left when its bound does not beat the best one. This is the fast one, unless many packings are
   nearly as good as the best; so it stops after a number of nodes.
2. *Dynamic programming* over lists of states (Nemhauser and Ullmann 1969). A state is the load and
   the gain of a packing of the first ranks. It stays on the list unless some state has less load
   and more gain, or its bound does not beat the best packing known. Here an item is split into
   *pieces* of about a half, a quarter, an eighth ... of its limit, each of which is packed or not.
   The loads are integers, so the lists end where the capacity does, and no table is needed.

Ranks are only found as far as the search looks: the items wait in a heap.
"""

import numpy as np
from numpy.typing import NDArray

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

History = NDArray[np.int32]  # (states, 2): the state before, and the piece that was added to it
States = tuple[IntArray, FloatArray, NDArray[np.int32]]  # loads, gains, places in the history

OPTIMAL, TOO_MANY_STATES = 0, 1

NODE_CAP = 10_000  # 0.2 ms; where the dynamic programme is needed, it takes that and more
STATE_CAP = 20_000_000  # of the history; about a gigabyte with the lists
ROUNDING = 2.0**-44  # relative to the best gain, a bound that exceeds it by less does not beat it

HALF_THE_LARGEST = 2**61  # twice the heaviest weight would not fit into an integer

BEFORE, PIECE = 0, 1
NOTHING = -1  # the place of the state before the first piece
PLACE, FIRST, STOP = 0, 1, 2


@subroutine
def sift_down(heap: IntArray, ratio: FloatArray, place: int, size: int) -> None:
    """Move an item down a heap until no item below it has a higher ratio."""
    item = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and ratio[heap[child + 1]] > ratio[heap[child]]:
            child += 1
        if ratio[heap[child]] <= ratio[item]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item


@subroutine
def heap_of_items(
    weights: IntArray, limits: IntArray, values: FloatArray, ratio: FloatArray, heap: IntArray
) -> int:
    """Fill the heap with the items that compete for the capacity; return their number."""
    size = 0
    for item in range(len(values)):
        if values[item] > 0 and weights[item] > 0 and limits[item] > 0:
            ratio[item] = values[item] / weights[item]
            heap[size] = item
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(heap, ratio, place, size)
    return size


@subroutine
def rank_one_more(
    heap: IntArray, ratio: FloatArray, waiting: int, order: IntArray, items: int
) -> int:
    """Move the item of the highest ratio from the heap to the order; return how many still wait."""
    order[items - waiting] = heap[0]
    waiting -= 1
    heap[0] = heap[waiting]
    sift_down(heap, ratio, 0, waiting)
    return waiting


@subroutine
def branch_and_bound(
    weights: IntArray,
    capacity: int,
    limits: IntArray,
    values: FloatArray,
    ratio: FloatArray,
    heap: IntArray,
    items: int,
    lightest: int,
    node_cap: int,
    order: IntArray,
    action: IntArray,
) -> tuple[bool, float, int]:
    """Search for the best packing; write the best one found into ``action``.

    Returns whether it is optimal, what it gains, and how many items still wait in the heap.

    The arrays below are indexed by rank. The items ranked before a node are decided, they leave
    some room and have some gain; ``bound`` is the Dantzig bound there and ``price`` the ratio of
    the item that it takes a fraction of. One unit less of an item lowers this bound at least by
    the unit's value above that price: often enough to see that the step cannot pay.
    """
    taken = np.empty(items, dtype=np.int64)
    room, gain = np.empty(items + 1, dtype=np.int64), np.empty(items + 1)
    bound, price = np.empty(items), np.empty(items)
    room[0], gain[0] = capacity, 0.0
    best, first, waiting = 0.0, 0, items
    for _ in range(node_cap):
        rank, highest = first, gain[first]
        while rank < items:
            if rank == items - waiting:
                waiting = rank_one_more(heap, ratio, waiting, order, items)
            item = order[rank]
            fits = limits[item] * weights[item] <= room[rank]
            taken[rank] = limits[item] if fits else room[rank] // weights[item]
            room[rank + 1] = room[rank] - taken[rank] * weights[item]
            gain[rank + 1] = gain[rank] + taken[rank] * values[item]
            highest = gain[rank + 1] if fits else gain[rank] + room[rank] * ratio[item]
            rank += 1
            if not fits:
                break
        if gain[rank] > best:
            best = gain[rank]
            for place in range(items - waiting):
                action[order[place]] = taken[place] if place < rank else 0
        enough = best * (1 + ROUNDING)
        if highest > enough:
            for place in range(first, rank):
                bound[place], price[place] = highest, ratio[order[rank - 1]]
            first = rank
            if first < items and room[first] >= lightest:
                continue
        else:  # with less of the item before ``first`` the bound is no higher
            rank = first - 1
        rank -= 1
        while rank >= 0:
            item = order[rank]
            bound[rank] -= values[item] - weights[item] * price[rank]
            if taken[rank] > 0 and bound[rank] > enough:
                break
            rank -= 1
        if rank < 0:
            return True, best, waiting
        taken[rank] -= 1
        room[rank + 1] += weights[order[rank]]
        gain[rank + 1] = gain[rank] + taken[rank] * values[order[rank]]
        first = rank + 1
    return items == 0, best, waiting


@subroutine
def fix_units(
    weights: IntArray,
    capacity: int,
    limits: IntArray,
    order: IntArray,
    items: int,
    fixed: IntArray,
    loose: IntArray,
) -> int:
    """Write how many units of each item are packed for sure, and how many more may be.

    Returns the room that the fixed units leave. Let y be the packing by rank that ends with the
    first item of which not all fits, and w the heaviest weight. Some best packing differs from y by
    at most 2w units: swap them one by one, so that the load stays within w of that of y. Of more
    than 2w loads two are the same, and undoing the swaps between them costs nothing.
    """
    heaviest, room, left = 0, capacity, capacity
    for rank in range(items):
        heaviest = max(heaviest, weights[order[rank]])
    swaps = 2 * min(heaviest, HALF_THE_LARGEST)
    for rank in range(items):
        item = order[rank]
        packed = min(limits[item], room // weights[item])
        room = room - packed * weights[item] if packed == limits[item] else 0
        fixed[item] = max(0, packed - swaps)
        loose[item] = min(limits[item] - packed, swaps) + packed - fixed[item]
        left -= fixed[item] * weights[item]
    return left


@subroutine
def split_into_pieces(
    weights: IntArray, limits: IntArray, values: FloatArray, order: IntArray, items: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the items, units, weights and values of the pieces, by rank and falling size.

    Every count up to the limit of an item is the sum of some of its pieces.
    """
    pieces = 0
    for rank in range(items):
        rest = limits[order[rank]]
        while rest > 0:
            rest //= 2
            pieces += 1
    item, units = np.empty(pieces, dtype=np.int64), np.empty(pieces, dtype=np.int64)
    weight, value = np.empty(pieces, dtype=np.int64), np.empty(pieces)
    piece = 0
    for rank in range(items):
        rest = limits[order[rank]]
        while rest > 0:
            item[piece], units[piece] = order[rank], rest - rest // 2
            weight[piece] = units[piece] * weights[order[rank]]
            value[piece] = units[piece] * values[order[rank]]
            rest //= 2
            piece += 1
    return item, units, weight, value


@subroutine
def new_states(size: int) -> States:
    """Return a list with room for so many states."""
    return np.empty(size, dtype=np.int64), np.empty(size), np.empty(size, dtype=np.int32)


@subroutine
def lengthened(history: History, size: int) -> History:
    """Return the history with room for so many states."""
    longer = np.empty((size, 2), dtype=np.int32)
    for place in range(len(history)):
        longer[place, BEFORE], longer[place, PIECE] = history[place, BEFORE], history[place, PIECE]
    return longer


@subroutine
def whole_pieces(
    weight: IntArray, value: FloatArray, first: int, room: int
) -> tuple[int, int, float]:
    """Return where the pieces from ``first`` on no longer fit, and their load and gain."""
    stop, load, gain = first, 0, 0.0
    while stop < len(weight) and weight[stop] <= room - load:
        load += weight[stop]
        gain += value[stop]
        stop += 1
    return stop, load, gain


@subroutine
def add_piece(
    weight: IntArray,
    value: FloatArray,
    capacity: int,
    piece: int,
    states: States,
    count: int,
    following: States,
    history: History,
    recorded: int,
    best: float,
    goal: IntArray,
) -> tuple[int, int, float]:
    """Merge the states without and with a piece, by rising load, into the following list.

    Returns its length, that of the history, and the best gain. The best packing is a state and
    the pieces behind it that fit whole: ``goal`` is its place, the first and the last of these.
    """
    loads, gains, places = states
    following_loads, following_gains, following_places = following
    stop, filled, extra = whole_pieces(weight, value, piece + 1, capacity - loads[0])
    without, within, kept, highest = 0, 0, 0, -1.0
    while True:
        load, gain, place, add = capacity, -1.0, NOTHING, False
        if without < count:
            load, gain, place = loads[without], gains[without], places[without]
        if within < count and loads[within] <= capacity - weight[piece]:
            heavier, better = loads[within] + weight[piece], gains[within] + value[piece]
            if heavier < load or (heavier == load and better > gain):
                load, gain, place, add = heavier, better, places[within], True
        if gain < 0:
            return kept, recorded, best
        if add:
            within += 1
        else:
            without += 1
        if gain <= highest:
            continue
        highest = gain
        while filled > capacity - load:
            stop -= 1
            filled -= weight[stop]
            extra -= value[stop]
        reach = gain + extra
        bound = reach
        if stop < len(weight):
            bound += (capacity - load - filled) * (value[stop] / weight[stop])
        if bound <= best * (1 + ROUNDING):
            continue
        if add:
            history[recorded, BEFORE], history[recorded, PIECE] = place, piece
            place = recorded
            recorded += 1
        if reach > best:
            best = reach
            goal[PLACE], goal[FIRST], goal[STOP] = place, piece + 1, stop
        following_loads[kept], following_gains[kept] = load, gain
        following_places[kept] = place
        kept += 1


@subroutine
def dynamic_programme(
    weights: IntArray,
    capacity: int,
    limits: IntArray,
    values: FloatArray,
    order: IntArray,
    items: int,
    best: float,
    state_cap: int,
    action: IntArray,
) -> int:
    """Write the best packing into ``action`` if it gains more than ``best``; return the status."""
    fixed, loose = np.empty_like(limits), np.empty_like(limits)
    room = fix_units(weights, capacity, limits, order, items, fixed, loose)
    item, units, weight, value = split_into_pieces(weights, loose, values, order, items)
    goal = np.full(3, NOTHING)
    states = np.zeros(1, dtype=np.int64), np.zeros(1), np.full(1, NOTHING, dtype=np.int32)
    following, history = states, np.empty((0, 2), dtype=np.int32)
    count, recorded = len(states[0]), len(history)
    for rank in range(items):
        states[1][0] += fixed[order[rank]] * values[order[rank]]
    for piece in range(len(item)):
        if recorded + count > state_cap:
            return TOO_MANY_STATES
        if recorded + count > len(history):
            history = lengthened(history, min(2 * (recorded + count), state_cap))
        if 2 * count > len(following[0]):
            following = new_states(3 * count)
        count, recorded, best = add_piece(
            weight,
            value,
            room,
            piece,
            states,
            count,
            following,
            history,
            recorded,
            best,
            goal,
        )
        if count == 0:
            break
        states, following = following, states
    if goal[FIRST] == NOTHING:
        return OPTIMAL
    for rank in range(items):
        action[order[rank]] = fixed[order[rank]]
    for piece in range(goal[FIRST], goal[STOP]):
        action[item[piece]] += units[piece]
    place = goal[PLACE]
    while place != NOTHING:
        piece = history[place, PIECE]
        action[item[piece]] += units[piece]
        place = history[place, BEFORE]
    return OPTIMAL


@kernel
def best_packings(
    weights: IntArray,
    capacity: int,
    limits: IntArray,
    values: FloatArray,
    node_cap: int,
    actions: IntArray,
) -> int:
    """Write a packing of the highest value for each row of ``values`` into ``actions``.

    Both are of shape (rows, items). Values are finite and of any sign, and so are their products
    with the limits; weights, limits and the capacity are from 0 to 2^62. A packing depends on its
    own row only. Its value is the highest up to 1e-12 of the sum of |value| · limit.

    Branch and bound has ``node_cap`` nodes for each row, then the dynamic programme takes over.
    Returns ``OPTIMAL``, or the status of the first row that failed; the later ones are not run.
    """
    items = len(weights)
    lightest = capacity
    for item in range(items):
        if weights[item] > 0:
            lightest = min(lightest, weights[item])
    ratio = np.empty(items)
    heap, order = np.empty(items, dtype=np.int64), np.empty(items, dtype=np.int64)
    for row in range(len(values)):
        for item in range(items):
            free = weights[item] == 0 and values[row, item] > 0
            actions[row, item] = limits[item] if free else 0
        competing = heap_of_items(weights, limits, values[row], ratio, heap)
        solved, best, waiting = branch_and_bound(
            weights,
            capacity,
            limits,
            values[row],
            ratio,
            heap,
            competing,
            lightest,
            node_cap,
            order,
            actions[row],
        )
        if not solved:
            while waiting > 0:
                waiting = rank_one_more(heap, ratio, waiting, order, competing)
            status = dynamic_programme(
                weights,
                capacity,
                limits,
                values[row],
                order,
                competing,
                best,
                STATE_CAP,
                actions[row],
            )
            if status != OPTIMAL:
                return status
    return OPTIMAL
