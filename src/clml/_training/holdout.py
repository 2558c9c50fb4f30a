"""What members say of rows that are followed, and of those that they left out.

The rows that a member left out judge it. With several members to a row, what judges is
an average like the one that predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from .._support.threads import shared
from .training_rows import TrainingRows, WideRows

# Weights times rows: with more, a member is asked in a call of its own.
_WORTH_A_CALL = 5e7


@dataclass(frozen=True, eq=False)
class EnsembleLogits:
    """What members say together.

    Attributes
    ----------
    networks : tuple of float32 arrays
        The weights of each.
    sizes : float64 array (members,)
        The root mean square of each one's logits of the rows that are followed, by
        which they are divided: only then does an average hear every member.
    seen : float64 array (followed, K)
        Average logits of the training rows that are followed, by members that were
        trained on them.
    by_kind : float64 array (kinds, judged, K)
        Average logits of the rows that judge, by members of each kind.
    shares : float64 array (kinds,) or None
        What each kind has in the average of all; None for the same.
    """

    networks: tuple[NDArray[np.float32], ...]
    sizes: NDArray[np.float64]
    seen: NDArray[np.float64]
    by_kind: NDArray[np.float64]
    shares: NDArray[np.float64] | None = None

    @property
    def unseen(self) -> NDArray[np.float64]:
        """Average logits (judged, K) of the rows that judge."""
        if len(self.by_kind) == 1:
            return self.by_kind[0]
        return np.tensordot(self._shares, self.by_kind, axes=1)

    @property
    def _shares(self) -> NDArray[np.float64]:
        n = len(self.by_kind)
        return np.full(n, 1.0 / n) if self.shares is None else self.shares

    def scales(self, kinds: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return what logits of each member are multiplied by before their mean.

        Parameters
        ----------
        kinds : int array (members,)
            That of each member.
        """
        own = self._shares[kinds] * len(kinds) / np.bincount(kinds)[kinds]
        return np.asarray(own / self.sizes)

    def mixed(
        self, other: EnsembleLogits, better: NDArray[np.bool_], kinds: NDArray[np.intp]
    ) -> EnsembleLogits:
        """Return this one with the kinds that are better in another.

        Parameters
        ----------
        other : EnsembleLogits
        better : bool array (kinds,)
        kinds : int array (members,)
            That of each member.
        """
        pairs = zip(self.networks, other.networks, better[kinds], strict=True)
        return EnsembleLogits(
            tuple(b if taken else a for a, b, taken in pairs),
            np.where(better[kinds], other.sizes, self.sizes),
            other.seen,
            np.where(better[:, None, None], other.by_kind, self.by_kind),
        )


@dataclass(frozen=True, eq=False)
class HeldOutScorer:
    """Who judges: members on rows they left out, or rows of validation.

    Attributes
    ----------
    rows : sequence of TrainingRows
        That train, as each member reads them.
    held_out : bool array (members, n)
    validation : sequence of TrainingRows or None
        Rows that no member was trained on, if there are any, as each reads them.
    followed : int array or None
        Training rows whose losses are followed; None for all of them.
    kinds : int array (members,) or None
        That of each member, from 0 on; None where all are of one. Members of every kind
        judge every row, so each kind is judged by itself.
    """

    rows: Sequence[TrainingRows]
    held_out: NDArray[np.bool_]
    validation: Sequence[TrainingRows] | None
    followed: NDArray[np.intp] | None = None
    kinds: NDArray[np.intp] | None = None

    @property
    def kind_of(self) -> NDArray[np.intp]:
        """The kind of each member, (members,)."""
        if self.kinds is None:
            return np.zeros(len(self.held_out), dtype=np.intp)
        return self.kinds

    @property
    def n_kinds(self) -> int:
        """How many kinds there are."""
        return int(self.kind_of.max()) + 1

    @property
    def judged(self) -> NDArray[np.bool_] | None:
        """Which training rows judge; None if validation rows do."""
        if self.validation is not None:
            return None
        if not self.impartial:
            return np.ones(self.held_out.shape[1], dtype=bool)
        return np.asarray(self.held_out.any(axis=0))

    @property
    def impartial(self) -> bool:
        """Whether rows judge that members were not trained on."""
        return self.validation is not None or bool(self.held_out.any())

    def score(
        self, networks: Sequence[NDArray[np.float32]], executor: Executor | None
    ) -> EnsembleLogits:
        """Compute what the members say."""
        groups = self._questions

        def answer(question: _Question) -> _Answers:
            return question.answered([networks[m] for m in question.members])

        answers: list[_Answers] = shared(executor, answer, groups)
        sizes = np.empty(len(networks))
        for question, said in zip(groups, answers, strict=True):
            sizes[question.members] = said.sizes

        def average(kind: int | None) -> NDArray[np.float64]:
            """Return what a kind says of the rows that judge; None: what all saw."""
            pairs = [
                (question, said)
                for question, said in zip(groups, answers, strict=True)
                if kind in (None, self.kind_of[question.members[0]])
            ]
            if kind is None:
                heard = [(q, said.logits, q.followed) for q, said in pairs]
                return self._averages(heard)[self._followed]
            if self.validation is not None:
                beyond = np.concatenate([said.beyond for _, said in pairs])
                return np.asarray(np.mean(beyond, axis=0, dtype=np.float64))
            heard = [(q, said.logits, q.judging) for q, said in pairs]
            return self._averages(heard)[self.judged]

        seen, *by_kind = shared(executor, average, [None, *range(self.n_kinds)])
        return EnsembleLogits(tuple(networks), sizes, seen, np.stack(by_kind))

    @property
    def _followed(self) -> slice | NDArray[np.intp]:
        return slice(None) if self.followed is None else self.followed

    @cached_property
    def _questions(self) -> list[_Question]:
        """What members are asked: of the rows that are followed, and of those left out.

        Members that read the same rows are asked together if their answers take less
        time than the call.
        """
        out = self.held_out
        followed = np.zeros_like(out)
        followed[:, self._followed] = ~out[:, self._followed]
        judging = np.zeros_like(out)
        if self.validation is None:
            # With too few rows for anyone to leave some out everybody judges all.
            judging = out if out.any() else ~judging
        # About the same rows all: their sizes are compared.
        common = np.zeros(out.shape[1], dtype=bool)
        common[self._followed] = True
        groups: dict[Any, list[int]] = {}
        for member, rows in enumerate(self.rows):
            alone = (
                type(rows) is not WideRows
                or rows.layout.size * out.shape[1] > _WORTH_A_CALL
            )
            key = id(rows), int(self.kind_of[member]), member if alone else None
            groups.setdefault(key, []).append(member)
        return [
            _Question.about(
                own,
                self.rows[own[0]],
                None if self.validation is None else self.validation[own[0]],
                common,
                out[own],
                followed[own],
                judging[own],
            )
            for own in groups.values()
        ]

    def _averages(
        self, heard: Sequence[tuple[_Question, NDArray, NDArray[np.bool_]]]
    ) -> NDArray[np.float64]:
        """Return the average logits (n, K), 0 where nobody is heard."""
        logits = heard[0][1]
        total = np.zeros((self.held_out.shape[1], logits.shape[1]), dtype=logits.dtype)
        votes = np.zeros(len(total), dtype=np.int64)
        for question, said, counts in heard:
            _add_heard(said, question.of_row, counts, total, votes)
        return np.asarray(total / np.maximum(votes, 1)[:, None], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Answers:
    """What members say.

    Attributes
    ----------
    logits : array (answers, K)
        Of the rows that each was asked about, divided by its size.
    sizes : float64 array (members,)
    beyond : array (members, rows, K) or None
        Of the rows of validation.
    """

    logits: NDArray
    sizes: NDArray[np.float64]
    beyond: NDArray | None


@dataclass(frozen=True, eq=False)
class _Question:
    """What members that read the same rows are asked, the same every epoch.

    Attributes
    ----------
    members : list of int
    rows : TrainingRows
    validation : TrainingRows or None
    asked : list of int arrays
        The rows that each is asked about.
    of_row : int array (answers,)
        The same, one after the other.
    common : int array (members, rows)
        Where answers about the rows stand that all members are asked about.
    followed, judging : bool arrays (answers,)
        Whether the answer counts.
    left_out : pair of int array and list of int arrays, or None
        Where answers stand that a member gives about rows which it left out and reads
        differently, and, for each, which of these they are.
    """

    members: list[int]
    rows: TrainingRows
    validation: TrainingRows | None
    asked: list[NDArray[np.intp]]
    of_row: NDArray[np.intp]
    common: NDArray[np.intp]
    followed: NDArray[np.bool_]
    judging: NDArray[np.bool_]
    left_out: tuple[NDArray[np.intp], list[NDArray[np.intp]]] | None

    @classmethod
    def about(
        cls,
        members: list[int],
        rows: TrainingRows,
        validation: TrainingRows | None,
        common: NDArray[np.bool_],
        held_out: NDArray[np.bool_],
        followed: NDArray[np.bool_],
        judging: NDArray[np.bool_],
    ) -> _Question:
        """Say where answers stand; arrays are (members, n)."""
        wanted = common | judging
        asked = [np.flatnonzero(own) for own in wanted]
        begins = np.cumsum([0, *(len(own) for own in asked[:-1])])
        place = np.cumsum(wanted, axis=1) - 1 + begins[:, None]
        left_out = None
        if isinstance(rows, WideRows) and rows.strangers is not None:
            theirs = rows.strangers[0]
            some = [np.flatnonzero(own[theirs]) for own in held_out]
            places = [place[m, theirs[own]] for m, own in enumerate(some)]
            left_out = np.concatenate(places), some
        return cls(
            members,
            rows,
            validation,
            asked,
            np.concatenate(asked),
            place[:, common],
            followed[wanted],
            judging[wanted],
            left_out,
        )

    def answered(self, networks: Sequence[NDArray[np.float32]]) -> _Answers:
        """Ask the members, whose networks are given."""
        logits = _logits(self.rows, networks, self.asked)
        square = np.mean(np.square(logits[self.common], dtype=np.float64), axis=(1, 2))
        sizes = np.sqrt(np.where(square > 0, square, 1.0))
        if self.left_out is not None:
            assert isinstance(self.rows, WideRows)
            places, some = self.left_out
            logits[places] = self.rows.strangers_logits(networks, some)
        scale = np.repeat(sizes.astype(np.float32), [len(own) for own in self.asked])
        beyond = None
        if self.validation is not None:
            rows = self.validation
            of_each = [_logits(rows, [one], [None]) for one in networks]
            beyond = np.stack(of_each) / sizes.astype(np.float32)[:, None, None]
        return _Answers(logits / scale[:, None], sizes, beyond)


def _logits(
    rows: TrainingRows,
    networks: Sequence[NDArray[np.float32]],
    some: Sequence[NDArray[np.intp] | None],
) -> NDArray:
    """Return the logits of each network of some rows of its own, one after another."""
    if type(rows) is WideRows:
        every = np.arange(rows.X.shape[0])
        own = [every if one is None else one for one in some]
        return rows.logits_of_each(networks, own)
    found = [
        rows.logits(
            network, None if own is None or len(own) == rows.X.shape[0] else own
        )
        for network, own in zip(networks, some, strict=True)
    ]
    return found[0].copy() if len(found) == 1 else np.concatenate(found)


@compiled
def _add_heard(logits, of_row, counts, total, votes):  # type: ignore[no-untyped-def]
    """Add the answers that count to the sums of their rows, in their order."""
    for i in range(len(of_row)):
        if counts[i]:
            row = of_row[i]
            votes[row] += 1
            for k in range(total.shape[1]):
                total[row, k] += logits[i, k]
