"""Exponential backoff of retries after failures."""


def calculate_backoff(failures: int, initial: float, maximum: float) -> float:
    """Return the seconds to wait after *failures* failures: *initial* doubled per further failure, at most *maximum*.

    0 without failures.
    """
    if failures <= 0:
        return 0.0
    if failures > 60:  # the maximum was reached long before, and larger powers overflow a float
        return maximum
    return min(initial * 2.0 ** (failures - 1), maximum)
