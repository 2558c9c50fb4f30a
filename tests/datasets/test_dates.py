from datetime import UTC, datetime

import pytest

from clml.datasets._dates import seconds_since_1970, strptime_format


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss", "2001-02-03T04:05:06", (2001, 2, 3, 4, 5, 6)),
        ("dd.MM.yy", "03.02.01", (2001, 2, 3)),
        ("yyyy", "1969", (1969, 1, 1)),
        ("EEE, d MMM yyyy h:mm a", "Sat, 3 Feb 2001 1:05 PM", (2001, 2, 3, 13, 5)),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2001-02-03 00:00:00.500", (2001, 2, 3, 0, 0, 0)),
        ("'100%' ''yyyy", "100% '2001", (2001, 1, 1)),
    ],
)
def test_worked_examples(pattern, text, expected):
    seconds = seconds_since_1970(text, strptime_format(pattern))
    fraction = 0.5 if "SSS" in pattern else 0.0
    assert seconds == datetime(*expected, tzinfo=UTC).timestamp() + fraction


def test_a_zone_is_respected():
    date_format = strptime_format("yyyy-MM-dd HH:mm Z")
    assert seconds_since_1970("1970-01-01 02:00 +0200", date_format) == 0.0


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("yyyy-QQ", "unknown 'QQ'"),
        ("yyyy 'x", "open quote"),
        ("HH:mm HH", "'HH' twice"),
        ("H:mm HH", "'HH' twice"),
    ],
)
def test_bad_patterns(pattern, message):
    with pytest.raises(ValueError, match=message):
        strptime_format(pattern)
