"""Order resource versions of any length, which are strings of digits in the API.

Source: KEP-5504, comparable resource versions; apimachinery/pkg/util/resourceversion/resourceversion.go,
CompareResourceVersion (1.36).
"""


def make_version_key(version: str) -> tuple[int, str] | None:
    """Return a key that orders resource versions; None if *version* is not a whole number.

    It is not an integer, because `int` rejects more than 4,300 digits.
    """
    return (len(version), version) if version.isascii() and version.isdigit() else None
