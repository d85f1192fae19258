"""Loading of a `Policy` from a Policy document, or from a ConfigMap with a Policy in `policy.cfg`.

Decoding follows releases 1.17 to 1.22. Inside `extenders`, an unknown field is ignored with a warning, and field names
are case-insensitive. Elsewhere, an unknown field is an error. Releases up to 1.16 ignored unknown fields everywhere.
This loader does not, because it should report misspelled fields.

Source: kube-scheduler/config/v1/types.go, Policy, LegacyExtender; pkg/scheduler/scheduler.go, initPolicyFromConfigMap
(1.21).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from extender.config.documents import parse_document
from extender.config.errors import ConfigError, FieldError, child, item
from extender.config.legacy_policy.policy import API_VERSIONS, KIND, LegacyExtender, Policy
from extender.config.strict_decoding import decode_strict, describe_value

CONFIG_MAP_KEY: Final = "policy.cfg"
"""The key of the Policy in a ConfigMap."""


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A decoded Policy and its warnings.

    Attributes:
        warnings: one per ignored field.
    """

    policy: Policy
    warnings: tuple[str, ...] = ()


def is_policy_or_config_map(document: object) -> bool:
    """Return whether *document* is a Policy or a ConfigMap."""
    if not isinstance(document, Mapping):
        return False
    kind, version = document.get("kind"), document.get("apiVersion")
    return kind == KIND or (kind == "ConfigMap" and version == "v1")


def load_policy(data: bytes, source: str) -> LoadedPolicy:
    """Load a Policy from a YAML or JSON document. A document without a kind is treated as a Policy.

    *data* is UTF-8; *source* is the file name for messages about the document as a whole.

    Raises:
        ConfigError: all decoding errors.
    """
    document, errors = parse_document(data, source)
    return decode_document(document, source, errors)


def decode_document(document: object, source: str, errors: list[FieldError]) -> LoadedPolicy:
    """Decode a Policy from a parsed document and the errors of the parser.

    Raises:
        ConfigError: as in `load_policy`.
    """
    if not isinstance(document, Mapping):
        raise ConfigError([*errors, FieldError("", f"{source}: expected an object, got {describe_value(document)}")])
    if document.get("kind") == "ConfigMap":
        if errors:
            raise ConfigError(errors)
        return _decode_config_map(document, source)
    kind, version = document.get("kind") or KIND, document.get("apiVersion") or API_VERSIONS[0]
    if kind != KIND or version not in API_VERSIONS:
        has_strings = isinstance(kind, str) and isinstance(version, str)
        actual_type = f"{version}, Kind={kind}" if has_strings else "a kind or apiVersion that is not a string"
        message = f"couldn't decode as {KIND}, got {actual_type}: write apiVersion: {API_VERSIONS[0]} and kind: {KIND}"
        raise ConfigError([*errors, FieldError("", message)])
    field_filter = _ExtenderFieldFilter()
    extenders = field_filter.filter_value(document.get("extenders"), tuple[LegacyExtender, ...], "extenders")
    policy, decoding_errors = decode_strict({**document, "extenders": extenders}, Policy, "")
    if errors or decoding_errors or policy is None:
        raise ConfigError([*errors, *decoding_errors])
    return LoadedPolicy(policy, tuple(field_filter.warnings))


def _decode_config_map(document: Mapping[str, object], source: str) -> LoadedPolicy:
    """Decode the Policy in a ConfigMap.

    Source: pkg/scheduler/scheduler.go, initPolicyFromConfigMap (1.21).
    """
    data = document.get("data")
    text = data.get(CONFIG_MAP_KEY) if isinstance(data, Mapping) else None
    if text is None:
        message = f'missing policy config map value at key "{CONFIG_MAP_KEY}"'
        if isinstance(data, Mapping) and data:
            message += f"; a KubeSchedulerConfiguration must be a file: extract {', '.join(data)}"
        raise ConfigError([FieldError("data", message)])
    if not isinstance(text, str):
        raise ConfigError([FieldError(f"data[{CONFIG_MAP_KEY}]", f"expected a string, got {describe_value(text)}")])
    policy_document, errors = parse_document(text.encode(), f"{source}, {CONFIG_MAP_KEY}")
    if isinstance(policy_document, Mapping) and policy_document.get("kind") == "ConfigMap":
        raise ConfigError(
            [FieldError(f"data[{CONFIG_MAP_KEY}]", "a ConfigMap cannot contain another ConfigMap: write a Policy")]
        )
    return decode_document(policy_document, source, errors)


class _ExtenderFieldFilter:
    """Drops the unknown fields in extenders, and records a warning for each of these fields."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def filter_value(self, raw: object, target: Any, path: str) -> object:
        """Return a copy of *raw* without unknown fields; known fields have their exact names."""
        if get_origin(target) in {Union, UnionType}:
            target = next(member for member in get_args(target) if member is not type(None))
        if isinstance(raw, Mapping) and isinstance(target, type) and issubclass(target, msgspec.Struct):
            return self._filter_fields(raw, target, path)
        if isinstance(raw, list) and get_origin(target) is tuple:
            element_type = get_args(target)[0]
            return [self.filter_value(value, element_type, item(path, index)) for index, value in enumerate(raw)]
        return raw

    def _filter_fields(self, raw: Mapping[str, object], target: type[msgspec.Struct], path: str) -> dict[str, object]:
        fields = {field.encode_name.casefold(): field for field in msgspec.structs.fields(target)}
        known_fields: dict[str, object] = {}
        for key, value in raw.items():
            field = fields.get(key.casefold())
            if field is None:
                self.warnings.append(f"{child(path, key)}: unknown field, ignored")
            else:
                name = field.encode_name
                known_fields[name] = self.filter_value(value, field.type, child(path, name))
        return known_fields
