"""Writes the kernel of `jostle.corruptions.kernels.median` out of its sorting network.

    python tests/golden/median_network.py

The merges are Batcher's (1968), by odd and even places. Of a merge only what leads to a wanted place is kept.
"""

from __future__ import annotations

from pathlib import Path

from jostle.corruptions.kernels import median

FILE = Path(median.__file__)
MARK = "\n\n# What follows is written by tests/golden/median_network.py.\n"
SIZE, HALF = 7, 3

Pair = tuple[int, int]  # two wires, which leave with the smaller value on the first


def merged(a: list[int], b: list[int]) -> tuple[list[Pair], list[int]]:
    """The comparisons that merge two sorted lists of wires, and the wires in order."""
    if not a or not b:
        return [], a or b
    if len(a) == len(b) == 1:
        return [(a[0], b[0])], [a[0], b[0]]
    first, even = merged(a[::2], b[::2])
    second, odd = merged(a[1::2], b[1::2])
    pairs = list(zip(odd, even[1:], strict=False))
    order = [even[0], *(wire for pair in pairs for wire in pair), *even[1 + len(odd) :], *odd[len(even) - 1 :]]
    return first + second + pairs, order


def ordered(wires: list[int]) -> tuple[list[Pair], list[int]]:
    """The comparisons that sort wires."""
    if len(wires) == 1:
        return [], wires
    half = len(wires) // 2
    first, low = ordered(wires[:half])
    second, high = ordered(wires[half:])
    third, order = merged(low, high)
    return first + second + third, order


def comparisons(pairs: list[Pair], wanted: list[int]) -> list[str]:
    """The lines that leave the right values on the wanted wires."""
    needed, lines = set(wanted), []
    for a, b in reversed(pairs):
        low, high = f"v{a} = min(v{a}, v{b})", f"v{b} = max(v{a}, v{b})"
        if a in needed and b in needed:
            lines.append(f"v{a}, v{b} = min(v{a}, v{b}), max(v{a}, v{b})")
        elif a in needed or b in needed:
            lines.append(low if a in needed else high)
        else:
            continue
        needed |= {a, b}
    return lines[::-1]


def at(line: int, shift: int = 0) -> str:
    """A value of a line of the scratch memory, so many pixels to the right."""
    return f"line[x + {line} * STRIDE + {3 * shift}]" if shift else f"line[x + {line} * STRIDE]"


def assign(pairs: list[tuple[str, str]]) -> list[str]:
    """Assignments (target, value), three a line."""
    threes = [pairs[i : i + 3] for i in range(0, len(pairs), 3)]
    return [" = ".join(", ".join(side) for side in zip(*three, strict=True)) for three in threes]


def merging(left: list[str], right: list[str], to: int) -> list[str]:
    """The body of a loop that merges two sorted groups of columns into lines from `to` on."""
    count = len(left) + len(right)
    pairs, order = merged(list(range(len(left))), list(range(len(left), count)))
    read = assign([(f"v{wire}", place) for wire, place in enumerate(left + right)])
    return [*read, *comparisons(pairs, order), *assign([(at(to + k), f"v{wire}") for k, wire in enumerate(order)])]


def bodies() -> list[tuple[str, int, list[str]]]:
    """The loops over a row: what each does, how many pixels beyond the row, and its body."""
    column, two, three = 0, SIZE, 3 * SIZE  # where sorted columns, pairs and threes of them stand
    pairs, order = ordered(list(range(SIZE)))
    sort = assign([(f"v{k}", f"r{k}[x]") for k in range(SIZE)]) + comparisons(pairs, order)
    sort += assign([(at(column + k), f"v{wire}") for k, wire in enumerate(order)])
    sides = 2 * HALF * SIZE
    pairs, order = merged(list(range(sides // 2)), list(range(sides // 2, sides)))
    rank = (SIZE * SIZE + 1) // 2
    wanted = order[rank - SIZE - 1 : rank]
    last = assign([(f"v{k}", at(three + k)) for k in range(3 * SIZE)])
    last += assign([(f"v{3 * SIZE + k}", at(three + k, HALF + 1)) for k in range(3 * SIZE)])
    last += comparisons(pairs, wanted)
    for taken in range(1, SIZE + 1):
        last.append(f"v{wanted[-1]} = min(v{wanted[-1]}, max(v{wanted[-1 - taken]}, {at(column + taken - 1, HALF)}))")
    last.append(f"result[x] = v{wanted[-1]}")
    single, double = [at(column + k) for k in range(SIZE)], [at(two + k) for k in range(2 * SIZE)]
    return [
        ("Columns of seven, sorted.", 6, sort),
        ("Two neighbouring columns as one.", 5, merging(single, [at(column + k, 1) for k in range(SIZE)], two)),
        ("Three.", 4, merging(double, [at(column + k, 2) for k in range(SIZE)], three)),
        ("Three on the left and three on the right, about their middle; then the column between them.", 0, last),
    ]


def kernel() -> str:
    """The kernel as text."""
    lines = [
        "@kernel",
        "def _median_of_seven(padded: Frame, out: Frame) -> None:",
        "    height, width = out.shape",
        f"    line = np.empty({SIZE * 6} * STRIDE, np.uint8)",
        "    for y in range(height):",
        "        for first in range(0, width, TILE):",
        "            # Never below 0: this hint lets the compiler vectorise.",
        "            n = max(min(width - first, TILE), 0)",
        *(f"            r{k} = padded[y + {k}, first:]" for k in range(SIZE)),
        "            result = out[y, first:]",
    ]
    for what, more, body in bodies():
        lines += [
            f"            # {what}",
            f"            for x in range(n + {3 * more}):" if more else "            for x in range(n):",
        ]
        lines += [f"                {step}" for step in body]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(FILE.read_text().split(MARK)[0] + MARK + "\n\n" + kernel())
