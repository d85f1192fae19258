"""Which names an extended resource may have, in kube-scheduler's words. Source: F008."""

from typing import Final

from extender.objects.label_syntax import qualified_name_faults

_QUOTA_PREFIX: Final = "requests."


def extended_resource_faults(name: str) -> list[str]:
    """What keeps *name* from naming an extended resource; empty when it does."""
    faults = qualified_name_faults(name)
    if faults:
        return faults
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith(_QUOTA_PREFIX) or qualified_name_faults(_QUOTA_PREFIX + name):
        return ["is an invalid extended resource name"]
    return []
