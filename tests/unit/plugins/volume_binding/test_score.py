"""The scores of VolumeBinding for pods without claims are cached; those of other pods depend on claims and volumes."""

import numpy as np

from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from tests.build import make_cluster, make_node, make_pod

GATES = FeatureGates({"StorageCapacityScoring": True})
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}


def test_all_pods_without_claims_have_one_cached_score_of_0() -> None:
    cache = make_cluster(make_node("a"), make_node("b"))
    plugin = VolumeBinding(PluginArgs(VolumeBindingArgs(), gates=GATES))
    snapshot = cache.snapshot()
    plain = snapshot.make_pod_info(make_pod("plain"))
    empty_dir = snapshot.make_pod_info(make_pod("empty-dir", spec={"volumes": [{"name": "tmp", "emptyDir": {}}]}))

    assert plugin.score_cache_key(plain) == ()
    assert plugin.score_cache_key(empty_dir) == ()
    nodes = snapshot.view(np.arange(2, dtype=np.int64))
    assert plugin.score(plain, nodes, plugin.pre_filter(plain, snapshot).state).tolist() == [0, 0]


def test_scores_of_pods_with_claims_are_not_cached() -> None:
    snapshot = make_cluster(make_node("a")).snapshot()
    plugin = VolumeBinding(PluginArgs(VolumeBindingArgs(), gates=GATES))

    for volume in (CLAIM, EPHEMERAL):
        pod = snapshot.make_pod_info(make_pod("pod", spec={"volumes": [volume]}))
        assert plugin.score_cache_key(pod) is None
