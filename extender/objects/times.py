"""Points in time as the API server writes them."""

from datetime import UTC, datetime


def stamp(seconds: float) -> str:
    """*seconds* since 1970 as metav1.Time: whole seconds in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(seconds: float) -> str:
    """*seconds* since 1970 as metav1.MicroTime: UTC with six decimal places."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
