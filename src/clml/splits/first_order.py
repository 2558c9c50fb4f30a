"""First-order stratification: rows dealt to parts by the labels they carry."""

import numpy as np
import numpy.typing as npt

from .._support.compiled import compiled

Integers = npt.NDArray[np.int64]


@compiled
def choose_part(desire: Integers, room: Integers, tie_break: float) -> int:
    """Return the keenest part with room: by desire, then by room.

    ``tie_break``, in [0, 1), chooses among parts that are level in both.
    """
    best = -1
    n_tied = 0
    for part in range(room.shape[0]):
        if room[part] == 0:
            continue
        if (
            best < 0
            or desire[part] > desire[best]
            or (desire[part] == desire[best] and room[part] > room[best])
        ):
            best = part
            n_tied = 1
        elif desire[part] == desire[best] and room[part] == room[best]:
            n_tied += 1
    if n_tied > 1:
        skip = int(tie_break * n_tied)
        for part in range(best, room.shape[0]):
            if desire[part] == desire[best] and room[part] == room[best]:
                if skip == 0:
                    return part
                skip -= 1
    return best


@compiled
def deal_by_label(
    row_pointers: Integers,
    row_labels: Integers,
    label_pointers: Integers,
    label_rows: Integers,
    label_priority: Integers,
    tie_breaks: npt.NDArray[np.float64],
    parts: Integers,
    room: Integers,
    desire: Integers,
    remaining: Integers,
) -> None:
    """Deal the rows that carry labels, those of the rarest label first.

    The indicator comes by rows (CSR: ``row_pointers``, ``row_labels``) and by
    labels (CSC: ``label_pointers``, ``label_rows``). ``label_priority`` orders
    labels that are equally rare, ``tie_breaks`` (one per row, in [0, 1)) chooses
    among parts that are equally keen. The state is updated in place: ``parts`` (-1
    for a row not dealt yet), ``room`` of each part, ``desire`` (labels, parts) and
    ``remaining`` rows of each label.
    """
    n_rows = row_pointers.shape[0] - 1
    n_labels = label_pointers.shape[0] - 1
    # Each pass uses one label up, so there are at most n_labels of them.
    for _ in range(n_labels):
        rarest = -1
        for label in range(n_labels):
            if remaining[label] == 0:
                continue
            if (
                rarest < 0
                or remaining[label] < remaining[rarest]
                or (
                    remaining[label] == remaining[rarest]
                    and label_priority[label] < label_priority[rarest]
                )
            ):
                rarest = label
        if rarest < 0:
            break
        for position in range(label_pointers[rarest], label_pointers[rarest + 1]):
            row = label_rows[position]
            if parts[row] >= 0:
                continue
            part = choose_part(desire[rarest], room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
            for entry in range(row_pointers[row], row_pointers[row + 1]):
                remaining[row_labels[entry]] -= 1
                desire[row_labels[entry], part] -= n_rows


@compiled
def deal_the_rest(
    tie_breaks: npt.NDArray[np.float64], parts: Integers, room: Integers
) -> None:
    """Deal the rows without labels to the parts with most room, in place."""
    for row in range(parts.shape[0]):
        if parts[row] < 0:
            part = choose_part(room, room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
