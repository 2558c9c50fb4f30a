"""First-order stratification: rows dealt to parts by the labels they carry."""

import numpy as np
import numpy.typing as npt

from .._compiled import compiled

Integers = npt.NDArray[np.int64]


@compiled
def choose_part(
    desire: Integers, second_desire: Integers, room: Integers, tie_break: float
) -> int:
    """Return the keenest part with room, by desire, second desire, then room.

    ``tie_break``, in [0, 1), chooses among parts that are level in all three.
    """
    best = -1
    n_tied = 0
    for part in range(room.shape[0]):
        if room[part] == 0:
            continue
        if best < 0:
            ahead = 1
        else:
            ahead = desire[part] - desire[best]
            if ahead == 0:
                ahead = second_desire[part] - second_desire[best]
            if ahead == 0:
                ahead = room[part] - room[best]
        if ahead > 0:
            best = part
            n_tied = 1
        elif ahead == 0:
            n_tied += 1
    if n_tied > 1:
        skip = int(tie_break * n_tied)
        for part in range(best, room.shape[0]):
            if (
                desire[part] == desire[best]
                and second_desire[part] == second_desire[best]
                and room[part] == room[best]
            ):
                if skip == 0:
                    return part
                skip -= 1
    return best


@compiled
def sum_desires(
    desire: Integers, row_labels: Integers, start: int, stop: int, total: Integers
) -> None:
    """Write into ``total`` what each part wants of all labels of one row."""
    total[:] = 0
    for entry in range(start, stop):
        for part in range(total.shape[0]):
            total[part] += desire[row_labels[entry], part]


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
    wanted = np.empty(room.shape[0], dtype=np.int64)
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
            start, stop = row_pointers[row], row_pointers[row + 1]
            # Parts that want the label equally: the row's other labels decide.
            sum_desires(desire, row_labels, start, stop, wanted)
            part = choose_part(desire[rarest], wanted, room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
            for entry in range(start, stop):
                remaining[row_labels[entry]] -= 1
                desire[row_labels[entry], part] -= n_rows


@compiled
def deal_the_rest(
    tie_breaks: npt.NDArray[np.float64], parts: Integers, room: Integers
) -> None:
    """Deal the rows without labels to the parts with most room, in place."""
    for row in range(parts.shape[0]):
        if parts[row] < 0:
            part = choose_part(room, room, room, tie_breaks[row])
            parts[row] = part
            room[part] -= 1
