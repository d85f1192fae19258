"""What is written down of an allocation: the devices, their configuration, the nodes they can be used on.

Source: B119.
"""

from collections.abc import Callable, Iterable, Sequence

from extender.allocation.allocator import Solution
from extender.allocation.features import Features
from extender.allocation.search import Chosen
from extender.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
)


def results_of(
    claims: Sequence[ResourceClaim], solution: Solution, node: str, features: Features, share_id: Callable[[], str]
) -> tuple[AllocationResult, ...]:
    """The allocation of each claim.

    Args:
        claims: that were allocated.
        solution: the devices of each.
        node: the name of the node.
        features: that are in use.
        share_id: makes a new identity for a share of a device.
    """
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_result(each, features, share_id) for each in chosen),
                config=tuple(_configuration(claim, chosen)),
            ),
            node_selector=_node_selector(chosen, node, binds=features.distinct),
        )
        for claim, chosen in zip(claims, solution.chosen, strict=True)
    )


def _result(chosen: Chosen, features: Features, share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    (driver, pool, name), device = chosen.device.id, chosen.device.device
    return DeviceRequestAllocationResult(
        request=chosen.request.qualified,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if chosen.request.admin else None,
        tolerations=chosen.request.tolerations,
        binding_conditions=device.binding_conditions if features.binding else (),
        binding_failure_conditions=device.binding_failure_conditions if features.binding else (),
        share_id=share_id() if chosen.shares is not None else None,
        consumed_capacity={key: amount.text for key, amount in (chosen.shares or {}).items()},
    )


def _configuration(claim: ResourceClaim, chosen: Sequence[Chosen]) -> Iterable[DeviceAllocationConfiguration]:
    """First that of the classes, each once, with the requests it is for; then that of the claim."""
    picked = {each.request.base: each.request for each in chosen}
    requests_of: dict[str, list[str]] = {}
    classes: dict[str, DeviceClass] = {}
    for request in claim.spec.devices.requests:
        way = picked.get(request.name)
        if way is not None:
            name = way.device_class.metadata.name
            classes[name] = way.device_class
            requests_of.setdefault(name, []).append(way.qualified)
    for name, names in requests_of.items():
        for config in classes[name].spec.config:
            yield DeviceAllocationConfiguration(source="FromClass", requests=tuple(names), opaque=config.opaque)
    for own in claim.spec.devices.config:
        given = DeviceAllocationConfiguration(source="FromClaim", requests=own.requests, opaque=own.opaque)
        if not own.requests:
            yield given
            continue
        for request in claim.spec.devices.requests:
            way = picked.get(request.name)
            if request.name in own.requests or (way is not None and way.parent and way.qualified in own.requests):
                yield given


def _node_selector(chosen: Sequence[Chosen], node: str, *, binds: bool) -> NodeSelector | None:
    """One node if a device is on one node or binds to it, else what all slices ask for; None: any node."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for each in chosen:
        device, spec = each.device.device, each.device.slice.object.spec
        source = device if each.device.slice.by_device else spec
        if source.node_name is not None or (binds and device.binds_to_node):
            here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        if source.node_selector is not None and source.node_selector.node_selector_terms:
            term = source.node_selector.node_selector_terms[0]
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, labels)
    if not fields and not labels:
        return None
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields)),)
    )


def _add_new(found: Iterable[NodeSelectorRequirement], known: list[NodeSelectorRequirement]) -> None:
    for each in found:
        if not any(
            (each.key, each.operator, set(each.values)) == (other.key, other.operator, set(other.values))
            for other in known
        ):
            known.append(each)
