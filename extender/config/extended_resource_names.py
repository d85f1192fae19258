"""Validation of extended resource names with kube-scheduler's messages.

Source: pkg/scheduler/apis/config/validation/validation.go, validateExtendedResourceName (1.36).
"""

from typing import Final

from extender.api.label_syntax import validate_qualified_name

_QUOTA_PREFIX: Final = "requests."


def validate_extended_resource_name(name: str) -> list[str]:
    """Return the reasons why *name* is not the name of an extended resource; an empty list if it is."""
    errors = validate_qualified_name(name)
    if errors:
        return errors
    is_native = "/" not in name or "kubernetes.io/" in name
    if is_native or name.startswith(_QUOTA_PREFIX) or validate_qualified_name(_QUOTA_PREFIX + name):
        return ["is an invalid extended resource name"]
    return []
