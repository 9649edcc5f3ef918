"""Assignments of least cost by shortest augmenting paths, compiled.

Every row gets a column of its own; there are at least as many columns as rows. Each column has a
price, at most 0, which is subtracted from its costs. An assignment is optimal if every row has the
column that is then cheapest for it, and if the price of every free column is 0.

1. Auction, twice: each row without a column takes the one that is cheapest for it, from another
   row if need be. The price falls until the row would do as well with its second choice.
2. Each row that is left is served along the cheapest *path*: it takes the column of a second row,
   which takes that of a third, and so on to a free column. It is found as by Dijkstra. The prices
   fall on the way, so that the assignment is optimal for the rows served so far.

After Jonker and Volgenant (1987) and Crouse (2016).
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

NONE = -1
AUCTIONS = 2


@subroutine
def two_cheapest(cost: FloatArray, price: FloatArray, row: int) -> tuple[int, float, float]:
    """Return the column that is cheapest for a row, its cost, and the cost of the second one."""
    column, first, second = NONE, math.inf, math.inf
    for j in range(len(price)):
        c = cost[row, j] - price[j]
        if c < second:
            if c < first:
                column, first, second = j, c, first
            else:
                second = c
    return column, first, second


@subroutine
def auction(cost: FloatArray, price: FloatArray, column_of: IntArray, row_of: IntArray) -> None:
    """Give each row without a column the one that is cheapest for it."""
    for row in range(len(column_of)):
        if column_of[row] != NONE:
            continue
        column, first, second = two_cheapest(cost, price, row)
        loser = row_of[column]
        if second < math.inf:
            price[column] -= second - first
        if loser != NONE:
            column_of[loser] = NONE
        row_of[column], column_of[row] = row, column


@subroutine
def extend(
    costs: FloatArray,
    open_price: FloatArray,
    offset: float,
    row: int,
    length: FloatArray,
    previous: IntArray,
) -> None:
    """Shorten the paths to the open columns by those that come through a row."""
    for j in range(len(length)):
        through = offset + (costs[j] - open_price[j])
        shorter = through < length[j]
        length[j] = through if shorter else length[j]
        previous[j] = row if shorter else previous[j]


@subroutine
def nearest(length: FloatArray, row_of: IntArray) -> int:
    """Return the open column with the shortest path, a free one if there is a choice."""
    column, least = 0, length[0]
    for j in range(1, len(length)):
        if length[j] <= least and (length[j] < least or row_of[j] == NONE):
            column, least = j, length[j]
    return column


@subroutine
def cheapest_path(
    cost: FloatArray,
    price: FloatArray,
    row_of: IntArray,
    row: int,
    open_price: FloatArray,
    length: FloatArray,
    final: FloatArray,
    previous: IntArray,
) -> int:
    """Find the cheapest path from a row to a free column; let the prices fall on the way.

    Returns the free column. The path leads back over the row ``previous[column]``, the column that
    this row has now, and so on. A column is open until the length of its path is final.
    """
    for j in range(len(price)):
        open_price[j], length[j], final[j] = price[j], math.inf, math.inf
    offset = 0.0
    while True:
        extend(cost[row], open_price, offset, row, length, previous)
        column = nearest(length, row_of)
        final[column] = length[column]
        if row_of[column] == NONE:
            break
        length[column], open_price[column] = math.inf, -math.inf  # closed
        row = row_of[column]
        offset = final[column] - (cost[row, column] - price[column])
    for j in range(len(price)):
        price[j] -= max(0.0, final[column] - final[j])
    return column


@subroutine
def assign(
    cost: FloatArray,
    price: FloatArray,
    column_of: IntArray,
    row_of: IntArray,
    open_price: FloatArray,
    length: FloatArray,
    final: FloatArray,
    previous: IntArray,
) -> None:
    """Find the column of every row; the last four arrays are workspace."""
    for row in range(len(column_of)):
        column_of[row] = NONE
    for column in range(len(row_of)):
        row_of[column], price[column] = NONE, 0.0
    for _ in range(AUCTIONS):
        auction(cost, price, column_of, row_of)
    for start in range(len(column_of)):
        if column_of[start] != NONE:
            continue
        column = cheapest_path(cost, price, row_of, start, open_price, length, final, previous)
        row = NONE
        while row != start:
            row = previous[column]
            row_of[column], column_of[row], column = row, column, column_of[row]


@kernel
def best_assignments(rows: int, cols: int, costs: FloatArray, actions: IntArray) -> None:
    """Write an assignment of least cost for each row of ``costs`` (batch, rows * cols).

    No row and no column is used twice, and the shorter side is used fully. Costs must be below
    1e300; rounding is that of a few additions of the largest of them.
    """
    few, many = min(rows, cols), max(rows, cols)
    step_few, step_many = (cols, 1) if rows <= cols else (1, cols)
    cost, price = np.empty((few, many)), np.empty(many)
    column_of, row_of = np.empty(few, dtype=np.int64), np.empty(many, dtype=np.int64)
    open_price, length, final = np.empty(many), np.empty(many), np.empty(many)
    previous = np.empty(many, dtype=np.int64)
    for k in range(len(costs)):
        for i in range(few):
            for j in range(many):
                cost[i, j] = costs[k, i * step_few + j * step_many]
        assign(cost, price, column_of, row_of, open_price, length, final, previous)
        for cell in range(rows * cols):
            actions[k, cell] = 0
        for i in range(few):
            actions[k, i * step_few + column_of[i] * step_many] = 1
