"""Timestamps in the formats of the Kubernetes API."""

from datetime import UTC, datetime


def format_time(seconds: float) -> str:
    """Format *seconds* since 1970 as metav1.Time: whole seconds in UTC."""
    return f"{_get_utc_time(seconds).isoformat(timespec='seconds')}Z"


def format_micro_time(seconds: float) -> str:
    """Format *seconds* since 1970 as metav1.MicroTime: UTC with six decimal places."""
    return f"{_get_utc_time(seconds).isoformat(timespec='microseconds')}Z"


def _get_utc_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)  # `strftime` omits leading zeros of the year
