"""Which names an extended resource may have, in kube-scheduler's words. Source: F008."""

import re
from typing import Final

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME_FAULT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_SUBDOMAIN_FAULT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_QUOTA_PREFIX: Final = "requests."


def qualified_name_faults(name: str) -> list[str]:
    """What keeps *name* from being a qualified name, `example.com/MyName`; empty when it is one."""
    *prefix, last = name.split("/")
    if len(prefix) > 1:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_FAULT}{optional}"]
    faults: list[str] = []
    if prefix == [""]:
        faults.append("prefix part must be non-empty")
    elif prefix:
        if len(prefix[0].encode()) > 253:
            faults.append("prefix part must be no more than 253 bytes")
        if not re.fullmatch(_SUBDOMAIN, prefix[0]):
            faults.append(f"prefix part {_SUBDOMAIN_FAULT}")
    if not last:
        faults.append("name part must be non-empty")
    elif len(last.encode()) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_NAME, last):
        faults.append(f"name part {_NAME_FAULT}")
    return faults


def extended_resource_faults(name: str) -> list[str]:
    """What keeps *name* from naming an extended resource; empty when it does."""
    faults = qualified_name_faults(name)
    if faults:
        return faults
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith(_QUOTA_PREFIX) or qualified_name_faults(_QUOTA_PREFIX + name):
        return ["is an invalid extended resource name"]
    return []
