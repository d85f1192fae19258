"""The default plugins register for the events of assigned pods and of the waiting pod itself."""

from extender.app.wiring import build_setup
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ActionType, EventResource
from extender.queueing.queueing_hints import build_queueing_hint_map

DELETE, SCALE_DOWN = ActionType.DELETE, ActionType.UPDATE_POD_SCALE_DOWN
LABEL, TOLERATION = ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION
GATES, CLAIM = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM


def list_actions(release: Release, resource: EventResource) -> dict[str, ActionType]:
    """Return the registered actions of each plugin on *resource*, by plugin name."""
    (profile,) = build_setup(gates=FeatureGates(release=release)).profiles.values()
    return {
        plugin: registered_event.action
        for plugin, registered_events in build_queueing_hint_map(profile).items()
        for registered_event in registered_events
        if registered_event.resource is resource
    }


def test_the_registrations_of_1_37_name_assigned_pods_and_the_waiting_pod() -> None:
    """Source: pkg/scheduler/framework/plugins, EventsToRegister of each plugin (1.37)."""
    assert list_actions(RELEASE_1_37, EventResource.ASSIGNED_POD) == {
        "NodePorts": DELETE,
        "NodeResourcesFit": DELETE | SCALE_DOWN,
        "VolumeRestrictions": DELETE,
        "NodeVolumeLimits": DELETE,
        "PodTopologySpread": ActionType.ADD | LABEL | DELETE,
        "InterPodAffinity": ActionType.ADD | LABEL | DELETE,
        "DefaultPreemption": DELETE,
    }
    assert list_actions(RELEASE_1_37, EventResource.TARGET_POD) == {
        "SchedulingGates": GATES,
        "NodeUnschedulable": TOLERATION,
        "TaintToleration": TOLERATION,
        "NodeResourcesFit": SCALE_DOWN,
        "PodTopologySpread": LABEL | TOLERATION,
        "InterPodAffinity": LABEL,
        "DynamicResources": CLAIM,
        "NodeDeclaredFeatures": ActionType.UPDATE,
    }
    assert list_actions(RELEASE_1_37, EventResource.POD) == {}


def test_the_registrations_of_1_36_name_all_pods() -> None:
    """Source: pkg/scheduler/framework/plugins, EventsToRegister of each plugin (1.36)."""
    assert list_actions(RELEASE_1_36, EventResource.POD) == {
        "NodeUnschedulable": TOLERATION,
        "TaintToleration": TOLERATION,
        "NodeResourcesFit": DELETE | SCALE_DOWN,
        "PodTopologySpread": ActionType.ADD | LABEL | DELETE | TOLERATION,
        "InterPodAffinity": ActionType.ADD | LABEL | DELETE,
        "DynamicResources": CLAIM,
        "NodeDeclaredFeatures": ActionType.UPDATE,
    }
