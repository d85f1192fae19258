"""The options of DynamicResources."""

from collections.abc import Mapping
from typing import Any

import msgspec

from extender.config import durations
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error


class DynamicResourcesArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of DynamicResources. Each is a Go duration, or None if its feature gate is off.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_DynamicResourcesArgs (1.36).
    """

    filter_timeout: str | None = None
    binding_timeout: str | None = None

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """Return *raw* with durations as Go prints them (`10m0s`). Options whose feature gates are on have defaults."""
        options = dict(raw)
        for key, default, is_enabled in (
            ("filterTimeout", "10s", "DRASchedulerFilterTimeout" in gates),
            ("bindingTimeout", "10m0s", are_binding_conditions_enabled(gates)),
        ):
            duration = options.get(key)
            if duration is None and is_enabled:
                options[key] = default
            elif isinstance(duration, str):
                try:
                    options[key] = durations.render(durations.parse(duration))
                except ValueError:
                    continue  # `validate` reports the error
        return options

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Return an error for each invalid duration, and for each duration whose feature gate is off.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateDynamicResourcesArgs (1.36).
        """
        errors: list[FieldError] = []
        for key, duration, minimum, range_message, is_enabled, gate_message in (
            (
                "filterTimeout",
                self.filter_timeout,
                0.0,
                "must be zero or positive",
                "DRASchedulerFilterTimeout" in gates,
                "DRASchedulingFilterTimeout feature gate is disabled",
            ),
            (
                "bindingTimeout",
                self.binding_timeout,
                1.0,
                "must be at least 1 second",
                are_binding_conditions_enabled(gates),
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
            ),
        ):
            field_path = child(path, key)
            if duration is None:
                continue
            try:
                seconds = durations.parse(duration)
            except ValueError as invalid_duration:
                errors.append(FieldError(field_path, f'{invalid_duration}: write it like "1m30s" or "100ms"'))
                continue
            if not is_enabled:
                errors.append(FieldError(field_path, f"Forbidden: {gate_message}"))
            elif seconds < minimum:
                errors.append(make_invalid_value_error(field_path, duration, range_message))
        return errors


def are_binding_conditions_enabled(gates: FeatureGates) -> bool:
    """Return whether binding conditions are supported. They need two feature gates."""
    return "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates
