"""The options of DynamicResources. Source: B126, G043."""

from collections.abc import Mapping
from typing import Any

import msgspec

from extender.config import durations
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.config.validate import invalid


class DynamicResourcesOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Options of DynamicResources: Go durations, null where the feature gate is off. Source: B126, G043."""

    filter_timeout: str | None = None
    binding_timeout: str | None = None

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """*raw* with the durations in their shortest form, and the defaults of the gates that are on."""
        body = dict(raw)
        for key, default, on in (
            ("filterTimeout", "10s", "DRASchedulerFilterTimeout" in gates),
            ("bindingTimeout", "10m0s", waits_for_conditions(gates)),
        ):
            written = body.get(key)
            if written is None and on:
                body[key] = default
            elif isinstance(written, str):
                try:
                    body[key] = durations.render(durations.parse(written))
                except ValueError:
                    continue  # `faults` says what is wrong with it
        return body

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:
        """Source: G043."""
        found: list[Fault] = []
        for key, written, least, too_short, on, forbidden in (
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
                waits_for_conditions(gates),
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
            ),
        ):
            where = child(path, key)
            if written is None:
                continue
            try:
                seconds = durations.parse(written)
            except ValueError as fault:
                found.append(Fault(where, f'{fault}: write it like "1m30s" or "100ms"'))
                continue
            if not on:
                found.append(Fault(where, f"Forbidden: {forbidden}"))
            elif seconds < least:
                found.append(invalid(where, written, too_short))
        return found


def waits_for_conditions(gates: FeatureGates) -> bool:
    """Whether binding conditions are known: two gates have to be on."""
    return "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates
