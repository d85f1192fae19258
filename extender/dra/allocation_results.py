"""Allocation results for the status of claims: devices, configuration and node selector.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from extender.api.kinds.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.api.kinds.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from extender.dra.allocator import NodeAllocation
from extender.dra.device_requests import DeviceResult
from extender.dra.features import Features


def build_allocation_results(
    claims: Sequence[ResourceClaim],
    allocation: NodeAllocation,
    node_name: str,
    features: Features,
    make_share_id: Callable[[], str],
) -> tuple[AllocationResult, ...]:
    """Build the allocation result of each claim.

    *allocation* has the devices of each claim. *make_share_id* returns a new ID of a device share.
    """
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_build_device_result(result, features, make_share_id) for result in results),
                config=_build_configurations(claim, results, features),
            ),
            node_selector=_build_node_selector(
                results, node_name, supports_binds_to_node=features.needs_non_stable_allocator
            ),
        )
        for claim, results in zip(claims, allocation, strict=True)
    )


def _build_device_result(
    result: DeviceResult, features: Features, make_share_id: Callable[[], str]
) -> DeviceRequestAllocationResult:
    (driver, pool, name), device = result.device.id, result.device.device
    return DeviceRequestAllocationResult(
        request=result.request.qualified_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if result.request.admin_access else None,
        tolerations=result.request.tolerations,
        binding_conditions=device.binding_conditions if features.device_binding_and_status else (),
        binding_failure_conditions=device.binding_failure_conditions if features.device_binding_and_status else (),
        share_id=make_share_id() if result.consumed_capacity is not None else None,
        consumed_capacity={key: amount.text for key, amount in (result.consumed_capacity or {}).items()},
        skip_node_operations=result.device.slice.skipped_operations if features.needs_experimental_allocator else (),
    )


def _build_configurations(
    claim: ResourceClaim, results: Sequence[DeviceResult], features: Features
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configurations of an allocation.

    Since 1.37, `requests` is empty in a configuration that applies to all requests.

    Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate
    (1.36, 1.37).
    """
    clears_requests = features.release.clears_requests_of_common_config
    configurations = tuple(_list_configurations(claim, results, repeats_per_request=not clears_requests))
    if not clears_requests:
        return configurations
    names_by_request = {
        request.name: {result.request.qualified_name for result in results if result.request.base_name == request.name}
        for request in claim.spec.devices.requests
    }
    return tuple(
        msgspec.structs.replace(configuration, requests=())
        if all(
            name in configuration.requests or (names and names <= set(configuration.requests))
            for name, names in names_by_request.items()
        )
        else configuration
        for configuration in configurations
    )


def _list_configurations(
    claim: ResourceClaim, results: Sequence[DeviceResult], *, repeats_per_request: bool
) -> Iterable[DeviceAllocationConfiguration]:
    """Yield the configuration of each class with the names of its requests, then the configuration of the claim.

    If *repeats_per_request*, a configuration of the claim is repeated for each request that it names, as in
    release 1.36.
    """
    chosen_requests = {result.request.base_name: result.request for result in results}
    request_names_by_class: dict[str, list[str]] = {}
    classes: dict[str, DeviceClass] = {}
    for request in claim.spec.devices.requests:
        chosen_request = chosen_requests.get(request.name)
        if chosen_request is not None:
            name = chosen_request.device_class.metadata.name
            classes[name] = chosen_request.device_class
            request_names_by_class.setdefault(name, []).append(chosen_request.qualified_name)
    for name, request_names in request_names_by_class.items():
        for config in classes[name].spec.config:
            yield DeviceAllocationConfiguration(source="FromClass", requests=tuple(request_names), opaque=config.opaque)
    for claim_config in claim.spec.devices.config:
        configuration = DeviceAllocationConfiguration(
            source="FromClaim", requests=claim_config.requests, opaque=claim_config.opaque
        )
        if not claim_config.requests:
            yield configuration
            continue
        for request in claim.spec.devices.requests:
            chosen_request = chosen_requests.get(request.name)
            if request.name in claim_config.requests or (
                chosen_request is not None
                and chosen_request.parent
                and chosen_request.qualified_name in claim_config.requests
            ):
                yield configuration
                if not repeats_per_request:
                    break


def _build_node_selector(
    results: Sequence[DeviceResult], node_name: str, *, supports_binds_to_node: bool
) -> NodeSelector | None:
    """Return the node selector of an allocation.

    If a device is usable only on the node, the result selects this node. Else it combines the selectors of the devices.
    If the devices have no selectors, the result is None.
    """
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for result in results:
        device, spec = result.device.device, result.device.slice.resource_slice.spec
        selection_source = device if result.device.slice.per_device_node_selection else spec
        if selection_source.node_name is not None or (supports_binds_to_node and device.binds_to_node):
            requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
        if selection_source.node_selector is not None and selection_source.node_selector.node_selector_terms:
            term = selection_source.node_selector.node_selector_terms[0]
            _add_missing_requirements(term.match_fields, fields)
            _add_missing_requirements(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields)),)
    )


def _add_missing_requirements(
    requirements: Iterable[NodeSelectorRequirement], combined_requirements: list[NodeSelectorRequirement]
) -> None:
    for requirement in requirements:
        if not any(
            (requirement.key, requirement.operator, set(requirement.values))
            == (other.key, other.operator, set(other.values))
            for other in combined_requirements
        ):
            combined_requirements.append(requirement)
