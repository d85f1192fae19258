"""The recorded cluster behind the pages."""

import msgspec
import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.ui.recorded_source import RecordedSource


def make_source(text: str) -> RecordedSource:
    setup = wiring.build_setup()
    return RecordedSource(parse_recording(text.encode(), "cluster.yaml"), setup.profiles, wiring.make_runtime())


def test_explaining_a_placed_pod_does_not_change_the_cluster(demo_source: RecordedSource) -> None:
    before = demo_source.get_snapshot().view().requested(0).tolist()
    first = demo_source.explain("shop/api-7f4b-c6jd2")[1].to_values()
    assert demo_source.get_snapshot().view().requested(0).tolist() == before
    assert demo_source.explain("shop/api-7f4b-c6jd2")[1].to_values() == first


@pytest.mark.parametrize("key", ["shop/none", "none/api-7f4b-g3ypl"])
def test_an_unknown_pod_is_an_error(demo_source: RecordedSource, key: str) -> None:
    with pytest.raises(InputError, match="there is no such pod"):
        demo_source.explain(key)


def test_labels_in_the_document_show_unprintable_characters_as_escapes() -> None:
    nodes = [
        f'{{apiVersion: v1, kind: Node, metadata: {{name: n{number}}}, spec: {{taints: [{{key: db, value: "{value}",'
        " effect: NoSchedule}]}}"
        for number, value in enumerate((r"x\u202ey", "plain"))
    ]
    document = msgspec.json.decode(make_source("\n---\n".join(nodes)).get_cluster_document())
    assert document["groups"]["taints"]["values"] == ["db=plain:NoSchedule", "db=x\\u202ey:NoSchedule"]
