"""Timestamps in the formats of the Kubernetes API."""

from datetime import UTC, datetime


def format_time(seconds: float) -> str:
    """Format *seconds* since 1970 as metav1.Time: whole seconds in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(seconds: float) -> str:
    """Format *seconds* since 1970 as metav1.MicroTime: UTC with six decimal places."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
