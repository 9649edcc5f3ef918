"""MPS files: good ones, the one on which readers of solvers hang, and damaged copies."""

import random

SITES = ["Le_Mans", "Lyon", "Nancy"]
TOWNS = {"north": 3, "south": 2}
RENT = [1.0, 1.5, 1.2]
ROOM = 4

# HiGHS 1.15 reads it for ever; there is no newline at the end
HANGS = "COLUMNS\n\n UP BND       x_Le_Mans_south   1.200000000000e+01"


def depots(guess: float = 0.25) -> str:
    """Return depots that serve towns: flows that are arms, and rent of depots that are open."""
    flows = [(site, town) for site in SITES for town in TOWNS]
    lines = ["NAME depots", "ROWS", " N cost"]
    lines += [f" E demand_{town}" for town in TOWNS] + [f" L room_{site}" for site in SITES]
    lines += ["COLUMNS", "    M1 'MARKER' 'INTORG'"]
    for site, town in flows:
        own = f" cost {guess}" if guess else ""
        lines.append(f"    x[{site},{town}]{own} demand_{town} 1")
        lines.append(f"    x[{site},{town}] room_{site} 1")
    for site, rent in zip(SITES, RENT, strict=True):
        lines.append(f"    open[{site}] cost {rent} room_{site} -{ROOM}")
    lines += ["    M2 'MARKER' 'INTEND'", "RHS"]
    lines += [f"    RHS demand_{town} {units}" for town, units in TOWNS.items()]
    lines += ["    RHS cost -7", "BOUNDS"]
    lines += [f" UP BND x[{site},{town}] {ROOM}" for site, town in flows]
    lines += [f" BV BND open[{site}]" for site in SITES]
    return "\n".join([*lines, "ENDATA", ""])


STOCK = """NAME
OBJSENSE
    MAX
ROWS
 N profit
 G least
 L shelf
 E even
COLUMNS
    MARKER 'MARKER' 'INTORG'
    x_1 profit 2 least 1
    x_1 shelf 3
    x_2 profit 1.5E0 least 1
    x_2 shelf 2 even 1
    MARKER 'MARKER' 'INTEND'
    stock even -2.0 shelf .5
RHS
    RHS least 1 shelf 12
RANGES
    RNG shelf 10 least 4
BOUNDS
 LI BND x_1 0
 UI BND x_1 5
 UP BND x_2 4
 FR BND stock
ENDATA
"""

GOOD = [depots(), depots(0), STOCK]


def damaged(rng: random.Random) -> str:
    """Return a good file with a few lines or words changed, repeated, moved, removed or cut."""
    lines = rng.choice(GOOD).splitlines()
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        words = lines[place].split(" ")
        word = rng.randrange(len(words))
        match rng.randrange(9):
            case 0:
                del lines[place]
            case 1:
                lines.insert(other, lines[place])
            case 2:
                lines[place], lines[other] = lines[other], lines[place]
            case 3:
                words[word] = rng.choice(NUMBERS)
                lines[place] = " ".join(words)
            case 4:
                words[word] = rng.choice(lines[other].split() or [""])
                lines[place] = " ".join(words)
            case 5:
                del words[word]
                lines[place] = " ".join(words)
            case 6:
                at = rng.randrange(len(lines[place]) + 1)
                lines[place] = lines[place][:at] + chr(rng.randrange(0x2100)) + lines[place][at:]
            case 7:
                lines[place] = lines[place] * rng.choice((2, 100))
            case _:
                lines = lines[:place] or [""]
        lines = lines or [""]
    return rng.choice(("\n", "\n", "\r\n", "\r")).join(lines) + rng.choice(("\n", ""))


NUMBERS = ["1e400", "-1e-400", "nan", "inf", "-Infinity", "0x10", "1_000", "1e9", "1e-9", "", "٣"]
