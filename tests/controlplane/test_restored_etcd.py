"""etcd is restored from a backup under running processes: resource versions go back."""

import json
import os
import shutil
import signal

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.extender_process import ExtenderProcess, grant_permissions
from tests.controlplane.scheduler_processes import (
    create_all,
    make_configuration,
    make_nodes,
    make_pods,
    start_scheduler,
    wait_until_bound,
)


def test_after_a_restore_of_etcd_the_lists_are_read_again(control_plane: ControlPlane, api: ApiClient) -> None:
    """The backup lacks twenty pods that fill the nodes, so that twenty other pods fit there."""
    grant_permissions(api)
    create_all(api, make_nodes(20))
    scheduler = start_scheduler(control_plane, make_configuration(control_plane))
    extender = ExtenderProcess(control_plane)
    create_all(api, make_pods("before", 20))
    wait_until_bound(api, 20)
    backup = control_plane.folder / "backup"
    etcd_process_id = control_plane.process_ids[0]
    os.kill(etcd_process_id, signal.SIGSTOP)
    shutil.copytree(control_plane.folder / "etcd", backup)
    os.kill(etcd_process_id, signal.SIGCONT)

    create_all(api, make_pods("lost", 20, cpu="3500m"))
    wait_until_bound(api, 40)
    node = api.get("Node", "node-0")
    for number in range(300):  # more versions than the API server writes when it starts
        api.patch({"kind": "Node", **node}, {"metadata": {"annotations": {"number": str(number)}}})
    control_plane.stop_api_server(signal.SIGKILL)
    control_plane.stop_etcd()
    shutil.rmtree(control_plane.folder / "etcd")
    backup.rename(control_plane.folder / "etcd")
    control_plane.start_etcd()
    control_plane.start_api_server()
    # Before the next writes: if they passed the lost versions, nothing would show the restore.
    for process in (scheduler, extender.process):
        process.wait_for_output("etcd was restored from a backup", 90.0)

    create_all(api, make_pods("after", 20, cpu="3500m"))
    wait_until_bound(api, 40)
    (pod,) = make_pods("asked", 1, cpu="3500m")
    pod["metadata"] |= {"namespace": "default", "uid": "asked"}
    node_names = [f"node-{number}" for number in range(20)]
    answer = extender.send("filter", {"Pod": pod, "NodeNames": node_names}).json()
    assert answer["NodeNames"] == [], json.dumps(answer)[:1000]
