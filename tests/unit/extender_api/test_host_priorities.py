"""Host priorities are encoded like a list of structs."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.api.extender_v1 import HostPriority
from extender.extender_api.host_priorities import HostPriorities
from extender.extender_api.node_names import NodeNames

NAMES = st.one_of(st.text(max_size=6), st.text(alphabet='",\\\n\u00e9\U0001f600a', max_size=6))


@given(st.lists(st.tuples(NAMES, st.integers(0, 10) | st.integers(0, 2**62))))
def test_priorities_are_encoded_like_a_list_of_structs(given_scores: list[tuple[str, int]]) -> None:
    best_first = sorted(given_scores, key=lambda pair: -pair[1])
    names = [name for name, _ in best_first]
    order = np.arange(len(names), dtype=np.int64)[::-1]  # the last one listed is the best
    priorities = HostPriorities(
        NodeNames(names[::-1]), order, np.array([score for _, score in best_first], dtype=np.int64)
    )
    structs = [HostPriority(name, score) for name, score in best_first]
    assert priorities.to_json() == msgspec.json.encode(structs)
    assert list(priorities) == structs


def test_nodes_are_encoded_best_first() -> None:
    priorities = HostPriorities(NodeNames(["n1", "n2", "n3"]), np.array([2, 0, 1]), np.array([10, 4, 4]))
    assert priorities.to_json() == b'[{"Host":"n3","Score":10},{"Host":"n1","Score":4},{"Host":"n2","Score":4}]'
