"""The types of the Policy API, and loading of a `Policy` from a document or from `policy.cfg` of a ConfigMap.

Decoding follows releases 1.17 to 1.22. Inside `extenders`, an unknown field is ignored with a warning, and field names
are case-insensitive. Elsewhere, an unknown field is an error. Releases up to 1.16 ignored unknown fields everywhere.
This loader does not, because it should report misspelled fields.

Source: kube-scheduler/config/v1/types.go, Policy, LegacyExtender;
pkg/scheduler/framework/plugins/legacy_registry.go, validatePredicate; pkg/scheduler/scheduler.go,
initPolicyFromConfigMap (1.21).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from extender.api.kinds.meta import Int32, Int64
from extender.config.documents import parse_document
from extender.config.errors import ConfigError, FieldError, child, item
from extender.config.model import Extender
from extender.config.strict_decoding import decode_strict, describe_value

KIND = "Policy"
API_VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")


class ServiceAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAffinity`: node labels whose values must be equal for all pods of a service.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, ServiceAffinity.Filter (1.21).
    """

    labels: tuple[str, ...] = ()


class LabelsPresence(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelsPresence`: labels that a node must have or must not have.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Filter (1.21).
    """

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a predicate. A valid argument has exactly one field."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A requested predicate."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAntiAffinity`: a node label. The pods of a service are spread across the label's values.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go,
    ServiceAffinity.updateNodeScoresForLabel (1.21).
    """

    label: str = ""


class LabelPreference(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelPreference`: a label that nodes should have or should not have.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Score (1.21).
    """

    label: str = ""
    presence: bool = False


class UtilizationShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function from utilization (0 to 100) to score (0 to 10).

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    utilization: Int32 = 0
    score: Int32 = 0


class ResourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A resource with its weight; 0 means 1.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    name: str = ""
    weight: Int64 = 0


class RequestedToCapacityRatioArguments(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `requestedToCapacityRatioArguments`: a function from utilization to score, and the resources.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a priority. A valid argument has exactly one field."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A requested priority with its weight."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class LegacyExtender(Extender, frozen=True, rename="camel"):
    """An HTTP extender of a Policy: `enableHTTPS` is named `enableHttps`, and `httpTimeout` is in nanoseconds.

    Source: kube-scheduler/config/v1/types.go, LegacyExtender (1.21).
    """

    enable_https: bool = False
    http_timeout: Int64 = 0

    def __post_init__(self) -> None:
        """Leave a timeout of 0 unchanged: its default is in seconds."""


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A Policy: the predicates, the priorities and the HTTP extenders of a scheduler.

    Attributes:
        predicates: None means the predicates of the default provider. An empty list means the mandatory ones only.
        priorities: None means the priorities of the default provider. An empty list means no priorities.
        hard_pod_affinity_symmetric_weight: 1 to 100; 0 means unset, which is treated as 1.
        always_check_all_predicates: evaluate all predicates instead of stopping at the first failure.

    Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21); pkg/scheduler/factory/factory.go,
    configFactory.CreateFromKeys (1.14); pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins
    (1.21).
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


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
