"""Damage to zip archives of arrays and JSON, with their checksums put right.

Otherwise the checksum would refuse every input, and what it protects would never be
tried.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Sequence

import numpy as np
from _fuzz_bytes import Generator, damaged, pick
from _fuzz_json import damaged_json
from _fuzz_npy import damaged_npy, saved_array

Members = list[tuple[str, bytes]]
_NAMES = [
    "", "state.json", "schema.json", "array0.npy", "array1.npy", "array00.npy",
    "../array0.npy", "/etc/x", "STATE.JSON", "array0.npy\0", "é.npy", "a" * 300,
    "X.npy", "Y.npy", "texts.npy", "folder/",
]  # fmt: skip
# Places of 4-byte and 2-byte numbers in a member's entry of the directory: checksum,
# sizes, lengths of name, extra field and comment, place; flags and method.
_FOURS, _TWOS = (16, 20, 24, 42), (8, 10, 28, 30, 32)
_ENTRY, _END = b"PK\x01\x02", b"PK\x05\x06"


def unzipped(content: bytes) -> tuple[Members, bytes]:
    """Return the members of an archive in their order, and its comment."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        return members, archive.comment


def zipped(
    members: Members, comment: bytes = b"", method: int = zipfile.ZIP_STORED
) -> bytes:
    """Return the archive, the same for the same members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members:
            # Without the time, so that a seed always gives the same inputs. A second
            # member of a name is what is wanted here, not a mistake.
            info = zipfile.ZipInfo(name or "nameless")
            archive.NameToInfo.pop(info.filename, None)
            archive.writestr(info, content, compress_type=method)
        archive.comment = comment
    return stream.getvalue()


def resealed(members: Members, sound: Members, comment: bytes) -> tuple[Members, bytes]:
    """Return members and comment with SHA-256 of what was changed put right.

    Wherever the digest of a sound member is written, the digest of what has taken its
    name is written instead: first in the JSON members, then in the comment.
    """
    new = dict(members)
    changed = [
        (_digest(content), _digest(new[name]))
        for name, content in sound
        if name in new and new[name] != content
    ]
    changed_members = []
    for name, content in members:
        if name.endswith(".json"):
            for before, after in changed:
                content = content.replace(before, after)
        changed_members.append((name, content))
    new = dict(changed_members)
    for name, content in sound:
        if name in new:
            comment = comment.replace(_digest(content), _digest(new[name]))
    return changed_members, comment


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _change_content(members: Members, sound: Members, generator: Generator) -> None:
    """Change what one member says, as its kind is written."""
    texts = [n for n, (name, _) in enumerate(members) if name.endswith(".json")]
    nested = [n for n, (_, content) in enumerate(members) if b"PK\x03\x04" in content]
    place = int(generator.integers(len(members)))
    if texts and generator.random() < 0.6:
        place = texts[0]
    if nested and generator.random() < 0.5:
        place = nested[0]
    name, content = members[place]
    try:
        content = _damaged_member(name, content, generator)
    except Exception:  # damaged before, and now beyond reading
        content = damaged(content, [content], generator)
    members[place] = (name, content)


def _damaged_member(name: str, content: bytes, generator: Generator) -> bytes:
    if name.endswith(".json"):
        return damaged_json(content, generator)
    inner = content.find(b"PK\x03\x04")
    if inner >= 0 and generator.random() < 0.9:
        # An archive within: bytes as an array, or a member that is one itself.
        changed = damaged_archive([content[inner:]], generator, blind=0.1)
        if not inner:
            return changed
        return saved_array(np.frombuffer(changed, dtype=np.uint8))
    if name.endswith(".npy"):
        return damaged_npy(content, generator)
    return damaged(content, [content], generator)


def _change_members(members: Members, sound: Members, generator: Generator) -> None:
    """Rename, remove, double, exchange or take over a member."""
    place = int(generator.integers(len(members)))
    other = int(generator.integers(len(members)))
    name, content = members[place]
    change = generator.integers(6)
    if change == 0:
        members[place] = (str(pick(generator, _NAMES)), content)
    elif change == 1 and len(members) > 1:
        del members[place]
    elif change == 2:
        members.append((name, members[other][1]))
    elif change == 3:
        members[place], members[other] = (
            (name, members[other][1]),
            (members[other][0], content),
        )
    elif change == 4:
        members.append((str(pick(generator, _NAMES)), content))
    else:
        members[place] = (name, pick(generator, sound)[1])


def _lying_directory(content: bytes, generator: Generator) -> bytes:
    """Return the archive with one number of its directory changed."""
    changed = bytearray(content)
    entries = []
    place = changed.find(_ENTRY)
    while place >= 0:
        entries.append(place)
        place = changed.find(_ENTRY, place + 4)
    end = changed.rfind(_END)
    if not entries or generator.random() < 0.2:
        place = end + int(pick(generator, [4, 8, 10, 12, 16, 20]))
        size = 2
    else:
        size = 4 if generator.random() < 0.5 else 2
        places = _FOURS if size == 4 else _TWOS
        place = int(pick(generator, entries)) + int(pick(generator, places))
    if place + size > len(changed):
        return bytes(changed)
    layout = "<I" if size == 4 else "<H"
    (value,) = struct.unpack_from(layout, changed, place)
    most = 2 ** (8 * size) - 1
    value = pick(generator, [0, 1, 8, 12, 99, value + 1, value - 1, 2 * value, most])
    struct.pack_into(layout, changed, place, max(0, min(int(value), most)))
    return bytes(changed)


def damaged_archive(
    seeds: Sequence[bytes], generator: Generator, blind: float = 0.15
) -> bytes:
    """Return one of the archives after some changes.

    Parameters
    ----------
    seeds : sequence of bytes
        Sound archives.
    generator : Generator
    blind : float
        Share of inputs whose bytes are changed without knowing what they mean.
    """
    seed = pick(generator, seeds)
    if generator.random() < blind:
        return damaged(seed, seeds, generator)
    sound, comment = unzipped(seed)
    members = list(sound)
    donor = sound if generator.random() < 0.5 else unzipped(pick(generator, seeds))[0]
    for _ in range(int(generator.geometric(0.75))):
        change = _change_members if generator.random() < 0.15 else _change_content
        change(members, donor, generator)
    if generator.random() < 0.95:
        members, comment = resealed(members, sound, comment)
    else:
        comment = damaged(comment, [comment], generator)[: 2**16 - 1]
    method = zipfile.ZIP_STORED
    if generator.random() < 0.05:
        method = int(
            pick(generator, [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        )
    content = zipped(members, comment, method)
    return _lying_directory(content, generator) if generator.random() < 0.1 else content
