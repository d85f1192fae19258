"""A document becomes a `Policy`: a Policy itself, or a ConfigMap that carries one under `policy.cfg`.

Read as releases 1.17 to 1.22 read it: an unknown field is an error, but inside `extenders` it is passed over (with a
note here), and the case of field names does not matter there. Releases up to 1.16 passed unknown fields over
everywhere; a misspelt one is worth more than a Policy that never meant anything by it. Source: C074 to C076, C082.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from extender.config.documents import normalise, read
from extender.config.faults import ConfigError, Fault
from extender.config.paths import child, item
from extender.config.strict import decode_strict, describe
from extender.policy.model import API_VERSIONS, KIND, LegacyExtender, Policy

CONFIG_MAP_KEY: Final = "policy.cfg"
"""Where a ConfigMap keeps a Policy."""


@dataclass(frozen=True, slots=True)
class Written:
    """A Policy as it was written.

    Attributes:
        policy: decoded.
        notes: what was passed over, a sentence each.
    """

    policy: Policy
    notes: tuple[str, ...] = ()


def is_policy(document: object) -> bool:
    """Whether *document*, plain values, is a Policy or a ConfigMap, which can only carry one."""
    if not isinstance(document, Mapping):
        return False
    kind, version = document.get("kind"), document.get("apiVersion")
    return kind == KIND or (kind == "ConfigMap" and version == "v1")


def load(data: bytes, source: str) -> Written:
    """The Policy in YAML or JSON *data*; a document without a kind is taken for one.

    Args:
        data: the text, UTF-8.
        source: the file's name, for messages about the text itself.

    Raises:
        ConfigError: every fault of decoding.
    """
    document, faults = read(data, source)
    return _written(document, source, faults)


def from_builtins(document: object, source: str) -> Written:
    """As `load`, for plain values.

    Raises:
        ConfigError: as `load`.
    """
    plain, faults = normalise(document)
    return _written(plain, source, faults)


def _written(document: object, source: str, faults: list[Fault]) -> Written:
    if not isinstance(document, Mapping):
        raise ConfigError([*faults, Fault("", f"{source}: expected an object, got {describe(document)}")])
    if document.get("kind") == "ConfigMap":
        if faults:
            raise ConfigError(faults)
        return _from_config_map(document, source)
    kind, version = document.get("kind") or KIND, document.get("apiVersion") or API_VERSIONS[0]
    if kind != KIND or version not in API_VERSIONS:
        said = f"{version}, Kind={kind}" if isinstance(kind, str) and isinstance(version, str) else "no text"
        message = f"couldn't decode as {KIND}, got {said}: write apiVersion: {API_VERSIONS[0]} and kind: {KIND}"
        raise ConfigError([*faults, Fault("", message)])
    trimmed = _Trimmed()
    body = {key: value for key, value in document.items() if key not in {"kind", "apiVersion"}}
    policy, wrong = decode_strict(trimmed.fields(body, Policy, "", fold=False), Policy, "")
    if faults or wrong or policy is None:
        raise ConfigError([*faults, *wrong])
    return Written(policy, tuple(trimmed.notes))


def _from_config_map(document: Mapping[str, object], source: str) -> Written:
    """Source: C082."""
    data = document.get("data")
    text = data.get(CONFIG_MAP_KEY) if isinstance(data, Mapping) else None
    if text is None:
        raise ConfigError([Fault("data", f'missing policy config map value at key "{CONFIG_MAP_KEY}"')])
    if not isinstance(text, str):
        raise ConfigError([Fault(f"data[{CONFIG_MAP_KEY}]", f"expected a string, got {describe(text)}")])
    inner, faults = read(text.encode(), f"{source}, {CONFIG_MAP_KEY}")
    if isinstance(inner, Mapping) and inner.get("kind") == "ConfigMap":
        raise ConfigError([Fault(f"data[{CONFIG_MAP_KEY}]", "a ConfigMap cannot carry another: write a Policy")])
    return _written(inner, source, faults)


class _Trimmed:
    """A walk along a type that leaves out fields extenders do not have; they become notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def fields(self, raw: object, wanted: type[msgspec.Struct], path: str, *, fold: bool) -> Any:
        """*raw*; with *fold* the known fields only, under the names the type gives them, whatever their case."""
        if not isinstance(raw, Mapping):
            return raw
        fold = fold or wanted is LegacyExtender
        known = {_folded(field.encode_name, fold): field for field in msgspec.structs.fields(wanted)}
        found: dict[str, object] = {}
        for key, value in raw.items():
            field = known.get(_folded(key, fold))
            if field is None and not fold:
                found[key] = value
            elif field is None:
                self.notes.append(f"{child(path, key)}: there is no such field; it is passed over")
            else:
                found[field.encode_name] = self._value(value, field.type, child(path, field.encode_name), fold=fold)
        return found

    def _value(self, raw: object, wanted: Any, path: str, *, fold: bool) -> object:
        if get_origin(wanted) in {Union, UnionType}:
            wanted = next(member for member in get_args(wanted) if member is not type(None))
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
            return self.fields(raw, wanted, path, fold=fold)
        if get_origin(wanted) is tuple and isinstance(raw, list):
            inner = get_args(wanted)[0]
            return [self._value(value, inner, item(path, index), fold=fold) for index, value in enumerate(raw)]
        return raw


def _folded(key: str, fold: bool) -> str:
    return key.casefold() if fold else key
