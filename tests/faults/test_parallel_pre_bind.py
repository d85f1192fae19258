"""PreBind plugins that run concurrently: nothing is undone before all of their writes end."""

import asyncio

from extender.fake_apiserver.registry.resources import RESOURCES_BY_KIND
from tests.faults.builders import LONG_LEASE, FaultHarness, run
from tests.faults.test_claim_writes import create_claims_for_one_device, find_allocated_claims, make_pod_with_claim
from tests.faulty_apiserver import Fault, FaultKind

VOLUMES = RESOURCES_BY_KIND["v1", "PersistentVolume"]


def create_volume(harness: FaultHarness) -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "volume"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    for manifest in (storage_class, volume, claim):
        harness.server.api.create_from_manifest(manifest)
    harness.server.api.patch(VOLUMES, "", "pv", {"status": {"phase": "Available"}}, subresource="status")


def make_pod_with_volume_and_device(harness: FaultHarness, name: str) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "volume"}}]
    harness.create_pods(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}], volumes=volumes)


def count_status_writes(harness: FaultHarness, claim: str) -> int:
    return len(harness.recorder.requests("PATCH", f"/resourceclaims/{claim}/status"))


def test_a_device_stays_in_flight_until_its_write_ends_although_the_write_of_a_volume_fails() -> None:
    """Unreserve had freed the device meanwhile, and another claim had got it, too."""

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a", "b")
        create_volume(harness)
        await harness.start_leader("DynamicResources", "VolumeBinding", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.STATUS, "patch", "persistentvolumes", code=403, times=1))
        harness.server.faults.add(Fault(FaultKind.DELAY, "patch", "resourceclaims/status", delay_seconds=20, times=1))
        make_pod_with_volume_and_device(harness, "a")
        await harness.wait_until(lambda: count_status_writes(harness, "a") == 1)
        make_pod_with_claim(harness, "b")
        await asyncio.sleep(60)
        assert find_allocated_claims(harness) == ["a"]

    run(scenario)


def test_the_wait_for_a_volume_ends_when_the_write_of_a_device_fails() -> None:
    """The wait would end after ten minutes."""

    async def scenario(harness: FaultHarness) -> None:
        create_claims_for_one_device(harness, "a")
        create_volume(harness)
        await harness.start_leader("DynamicResources", "VolumeBinding", **LONG_LEASE)
        harness.server.faults.add(Fault(FaultKind.STATUS, "patch", "resourceclaims/status", code=403, times=1))
        make_pod_with_volume_and_device(harness, "a")
        await harness.wait_until(lambda: count_status_writes(harness, "a") == 2, seconds=30)

    run(scenario)
