"""The bounds of docs/security.md: each figure is the default of the code, and each test that is named exists."""

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest

from extender.analysis import recorded_cluster
from extender.analysis.input import input_files, object_decoding, object_documents
from extender.api import matching, pod_limits, requests
from extender.api.kinds import meta
from extender.basics import input_limits
from extender.cache import pod_signature
from extender.cache.tables import (
    affinity_terms,
    history,
    node_counts,
    node_table,
    object_store,
    selector_counts,
    symbols,
)
from extender.client import (
    connections,
    errors,
    event_broadcaster,
    events,
    extender,
    extender_transport,
    listwatch,
    transport,
    watch,
    writer,
)
from extender.client.auth import exec_plugin
from extender.config import documents
from extender.config.feature_gates import FeatureGates
from extender.cycle.pod_group import hierarchy
from extender.dra import resource_slices
from extender.dra.cel import costs, environment, messages, regex, size_estimate
from extender.event_loop import cooperative_iteration, turn_budget
from extender.extender_api import (
    failed_nodes,
    json_parts,
    payloads,
    request_limits,
)
from extender.extender_api.best_node import assumptions
from extender.extender_api.body_reader import BodyReader
from extender.extender_api.decision_log import DecisionLog
from extender.framework import result_cache
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.preemption import extender_victims
from extender.scheduler import attempt_history, failure_handler
from extender.serving import authentication, http_protocol, http_server
from extender.serving.rejection_log import RejectionLog
from tests.doc_pages import DOCS, ROOT

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_CACHES: Final = payloads.DecodeCaches()
_LIMITS: Final = request_limits.DEFAULT_LIMITS
_RULES: Final = (pod_limits.MAX_RULE_FIELDS, pod_limits.MAX_RULE_BYTES)
_RECORDING: Final = inspect.signature(input_files.read_file).parameters["max_bytes"].default
_CONFIG: Final = inspect.signature(documents.parse_document).parameters["max_bytes"].default

FIGURES: Final[dict[str, dict[str, tuple[Any, Any]]]] = {
    "Head of a request": {"64 KiB": (http_protocol.MAX_HEAD_BYTES, 64 * KIB)},
    "Pods assumed by filter; deleted pods that filter does not assume": {
        "20,000": (assumptions.MAX_ASSUMPTIONS, 20_000),
        "10,000": (assumptions.MAX_DELETED_PODS, 10_000),
        "a minute": (assumptions.DEFAULT_TIMEOUT_SECONDS, 60),
    },
    "Headers of a request, with its trailers": {"100": (http_protocol.MAX_HEADERS, 100)},
    "Chunk extensions and trailers": {
        "64 KiB": (http_protocol.MAX_HEAD_BYTES, 64 * KIB),
        "8 times": (http_protocol.MAX_FRAMING_RATIO, 8),
    },
    "Requests that wait on one connection": {"16": (http_protocol.MAX_PIPELINED_REQUESTS, 16)},
    "Time for a TLS handshake": {"10 seconds": (http_server.HANDSHAKE_SECONDS, 10)},
    "Connections of one port, unfinished TLS handshakes included": {"4,096": (http_server.MAX_CONNECTIONS, 4096)},
    "Time for a request or a response": {"30 seconds": (http_protocol.TRANSFER_TIMEOUT, 30)},
    "Body of a request with names; with whole objects; all bodies and all responses to verbs together": {
        "8 MiB": (_LIMITS.max_names_bytes, 8 * MIB),
        "256 MiB": (_LIMITS.max_bytes, 256 * MIB),
        "1 GiB": (BodyReader().max_total_bytes, GIB),
    },
    "Nodes and victims of a request": {
        "100,000": (_LIMITS.max_nodes, 100_000),
        "100,000 each": (_LIMITS.max_victims, 100_000),
    },
    "A pod or node of a request; the victims on one node": {
        "3 MiB": (request_limits.MAX_OBJECT_BYTES, 3 * MIB),
        "20,000 JSON objects": (request_limits.MAX_JSON_OBJECTS, 20_000),
        "50,000 fields and items": (request_limits.MAX_JSON_VALUES, 50_000),
        "100,000 JSON objects": (request_limits._MAX_JSON_OBJECTS_ON_NODE, 100_000),
    },
    "Values of a request that is decoded a second time, because of a null or a wrong type": {
        "5,000": (json_parts.MAX_VALUES_WITH_NULL, 5000)
    },
    "Nodes with victims of a preempt request in another form than Go's": {
        "10,000": (payloads._MAX_NODES_IN_ONE_CALL, 10_000)
    },
    "Pods on the nodes whose victims are reviewed before other tasks run": {
        "4,000": (extender_victims.MAX_PODS_PER_PART, 4000)
    },
    "Scheduling rules of a pod, also of one that a page or What if evaluates": {
        "1,000 fields and 256 KiB": (_RULES, (1000, 256 * KIB))
    },
    "Characters of the name of a resource that a pod requests": {
        "317": (pod_limits.MAX_RESOURCE_NAME_LENGTH, 317),
    },
    "Labels; volumes; containers; resources of a pod": {
        "1,000;": (pod_limits.MAX_LABELS, 1000),
        "1,000; 1,000;": (pod_limits.MAX_VOLUMES, 1000),
        "1,000; 256": (pod_limits.MAX_CONTAINERS, 1000),
        "256": (pod_limits.MAX_RESOURCE_NAMES, 256),
    },
    "Keys of node labels that pods name and no node has; keys with values of removed nodes": {
        "4,096;": (symbols._MAX_UNUSED_LABEL_KEYS, 4096),
        "1,024": (symbols._MAX_USED_LABEL_KEYS, 1024),
    },
    "Taints, features and values of a label that the cluster's nodes had": {"1,024": (symbols.MAX_UNUSED_VALUES, 1024)},
    "Nodes whose device pools are cached": {"1,024": (symbols.MAX_UNUSED_VALUES, 1024)},
    "Selectors whose pods are gone; affinity terms without pods, beyond the number of those with pods": {
        "256 each": (selector_counts._MAX_EMPTIED_MATCHERS, 256),
        "256": (affinity_terms._MAX_UNUSED_TERMS, 256),
    },
    "Requirements and values of a label selector that are compared with each pod": {
        "64": (matching._MAX_SCANNED_VALUES, 64),
    },
    "Columns of node labels that pods name and a node has; label keys of removed nodes": {
        "256": (node_table.MAX_LABEL_COLUMNS, 256),
        "1,024": (node_table._MAX_UNUSED_LABEL_KEYS, 1024),
    },
    "Cached sums of the requests of containers": {
        "4,096": (requests._sum_container_requests.cache_info().maxsize, 4096),
        "32 requests": (requests._MAX_CACHED_REQUESTS, 32),
    },
    "Resources that pods add to those of the nodes; that whole nodes of requests add": {
        "256": (pod_limits.MAX_RESOURCE_NAMES, 256)
    },
    "New resources of a changed node; resources that nodes have had": {
        "256": (pod_limits.MAX_RESOURCE_NAMES, 256),
        "1,024": (node_table._MAX_SHARED_RESOURCES, 1024),
    },
    "Fields of a request, of its list of nodes, or of the metadata of this list": {
        "1,000": (json_parts.MAX_FIELDS, 1000)
    },
    "JSON that is decoded in one call": {"16 MiB": (json_parts.MAX_DECODE_BYTES, 16 * MIB)},
    "Part of a response that is written at once": {"256 KiB": (http_protocol._MAX_BUFFERED_BYTES, 256 * KIB)},
    "Time before other tasks run, in loops over nodes or victims": {
        "10 milliseconds": (cooperative_iteration.MAX_BLOCKING_SECONDS, 0.01)
    },
    "Time in one turn of the event loop after which no further step begins": {
        "4 milliseconds": (turn_budget.TURN_SECONDS, 0.004)
    },
    "Reviews by the API server that wait, of tokens and of permissions each": {
        "64": (connections.MAX_PENDING_REQUESTS, 64)
    },
    "Cached reviews, of tokens and of permissions each": {"4,096": (authentication.MAX_CACHED, 4096)},
    "Log lines about rejected callers, failed reviews and invalid requests": {
        "10 per second": (RejectionLog("").max_lines / RejectionLog("").interval, 10)
    },
    "Pending requests to the API server while pods are scheduled": {"64": (connections.MAX_PENDING_REQUESTS, 64)},
    "Caches of decoded requests: pods; nodes; lists of names": {
        "16 MiB": (_CACHES.pods._max_bytes, 16 * MIB),
        "256 MiB": (_CACHES.nodes._max_bytes, 256 * MIB),
    },
    "Log of decisions": {
        "64 MiB": (DecisionLog().max_bytes, 64 * MIB),
        "8 decisions": (DecisionLog().max_per_pod, 8),
    },
    "Pod signatures that no pod has": {"16 MiB": (pod_signature._MAX_RECENT_BYTES, 16 * MIB)},
    "Spec classes, which have the cached values of pods whose specs differ in amounts only": {
        "32 MiB": (pod_signature._MAX_CLASS_BYTES, 32 * MIB)
    },
    "Labels of pods that are gone: in counts of pods; with the affinity terms that match them": {
        "256": (selector_counts._MAX_UNUSED_LISTS, 256),
        "4,096": (affinity_terms._MAX_CACHED_LABELS, 4096),
    },
    "Updates of the counts of a selector that no pod reads; selectors in the lists of all labels of pods together": {
        "512": (selector_counts._MAX_UNREAD_UPDATES, 512),
        "4,194,304": (selector_counts._MAX_LISTED_MATCHERS, 4_194_304),
    },
    "Arrays of the counts of an affinity term": {"256 bytes": (8 * node_counts._SPARSE_RATIO, 256)},
    "Cached pairs of labels and affinity terms that match them": {
        "1,048,576": (affinity_terms._MAX_CACHED_MATCHES, 1_048_576),
    },
    "Logs of changed nodes and pods": {"131,072": (history._BLOCK_SIZE * history._MAX_BLOCKS, 131_072)},
    "Log of the written objects of one kind": {"8,192": (2 * object_store._MIN_RETAINED_KEYS, 8192)},
    "Cached results of plugins for nodes: of filters; of scores": {
        "48 MiB each": (result_cache._MAX_BYTES, 48 * MIB),
        "8 KiB": (result_cache._MAX_POD_BYTES, 8 << 10),
    },
    "Message of a failed attempt, in the log and the pod's condition; error of an ignorable HTTP extender in the log": {
        "1.5 MiB": (failure_handler.MAX_MESSAGE_LENGTH, 1.5 * MIB),
        "1,000": (input_limits.MAX_MESSAGE_LENGTH, 1000),
    },
    "Attempts that pages show": {
        "1,000": (attempt_history.MAX_ATTEMPTS, 1000),
        "16 KiB": (attempt_history.MAX_MESSAGE_LENGTH, 16 * KIB),
        "60 seconds": (attempt_history.MAX_SECONDS, 60),
    },
    "Events that are not written yet; events that may become a series": {
        "20,000": (event_broadcaster.CAPACITY, 20_000),
        "20,000 each": (events.MAX_CACHED_EVENTS, 20_000),
    },
    "Reason of a failed node in a response": {"1,024": (failed_nodes._MAX_TEXT_LENGTH, 1024)},
    "Response of the API server: an object; a page; a list": {
        "16 MiB": (transport.MAX_RESPONSE_BYTES, 16 * MIB),
        "256 MiB": (listwatch.MAX_PAGE_BYTES, 256 * MIB),
        "4 GiB": (listwatch.MAX_LIST_BYTES, 4 * GIB),
    },
    "Message of a failure response of the API server": {"16 KiB": (errors.MAX_MESSAGE_LENGTH, 16 * KIB)},
    "Objects and pages of a list": {
        "1,000,000": (listwatch.MAX_LIST_OBJECTS, 1_000_000),
        "100 pages": (listwatch.MAX_EMPTY_PAGES, 100),
    },
    "Time until a binding without a response is settled": {
        "22 seconds": (writer.BIND_TIMEOUT + writer.ETCD_TIMEOUT, 22),
        "7 after": (writer.ETCD_TIMEOUT, 7),
    },
    "A watch event": {"64 MiB": (watch.MAX_EVENT_BYTES, 64 * MIB)},
    "Nesting of an object of the API server": {"500 levels": (meta.MAX_LEVELS, 500)},
    "Groups from the root of a tree of pod groups to a leaf": {"100": (hierarchy.MAX_TREE_DEPTH, 100)},
    "Response of an HTTP extender": {"64 MiB": (extender_transport.MAX_RESPONSE_BYTES, 64 * MIB)},
    "Headers of a response of the API server or an HTTP extender; informational responses (1xx) to a request": {
        "1,000": (connections.MAX_HEADERS, 1000),
        "64 KiB": (connections.MAX_HEADER_BYTES, 64 * KIB),
        "100": (connections.MAX_INFORMATIONAL_RESPONSES, 100),
    },
    "Scores or nodes of an HTTP extender's response; its values with names; with nodes; of victims, or with a null": {
        "100,000": (extender.MAX_ITEMS, 100_000),
        "1,000,000": (extender.MAX_VALUES, 1_000_000),
        "4,000,000": (extender.MAX_VALUES_WITH_NODES, 4_000_000),
    },
    "Recorded cluster (`-f`), plain or gunzipped": {"2 GiB": (_RECORDING, 2 * GIB)},
    "Files of a directory (`-f`)": {"10,000": (input_files._MAX_DIRECTORY_FILES, 10_000)},
    "Recorded cluster in YAML": {
        "256 MiB": (input_limits.MAX_YAML_BYTES, 256 * MIB),
        "30,000,000": (input_limits.MAX_YAML_EVENTS, 30_000_000),
    },
    "Pods of the workloads in files": {"500,000": (input_limits.MAX_WORKLOAD_PODS, 500_000)},
    "Documents per recorded cluster": {"500,000": (input_limits.MAX_DOCUMENTS, 500_000)},
    "Lists per recorded cluster": {"100,000": (object_documents._MAX_LISTS, 100_000)},
    "Distinct skipped kinds": {"1,000": (recorded_cluster._MAX_SKIPPED_KINDS, 1000)},
    "Nesting, recorded YAML / configuration, kubeconfig": {
        "500": (input_limits.MAX_RECORDING_DEPTH, 500),
        "100": (input_limits.MAX_CONFIG_DEPTH, 100),
    },
    "Lines that begin with %TAG, per file": {"100": (documents._MAX_TAG_DIRECTIVES, 100)},
    "YAML aliases and merges": {
        "400,000": (documents._ALIAS_RATIO_RANGE_LOW, 400_000),
        "4,000,000": (documents._ALIAS_RATIO_RANGE_HIGH, 4_000_000),
    },
    "Digits of an integer": {"4,000": (input_limits.MAX_DIGITS, 4000)},
    "Object name / kind / apiVersion": {
        "253": (object_decoding._MAX_NAME_LENGTH, 253),
        "63": (object_documents._MAX_KIND_LENGTH, 63),
        "317": (object_documents._MAX_VERSION_LENGTH, 317),
    },
    "Part of an error line": {"1,000": (input_limits.MAX_MESSAGE_LENGTH, 1000)},
    "Configuration, Policy": {"1 MiB": (_CONFIG, MIB), "200,000": (input_limits.MAX_CONFIG_VALUES, 200_000)},
    "Kubeconfig": {
        "16 MiB": (input_limits.MAX_KUBECONFIG_BYTES, 16 * MIB),
        "200,000": (input_limits.MAX_CONFIG_VALUES, 200_000),
    },
    "Token file": {"1 MiB": (input_limits.MAX_CREDENTIAL_BYTES, MIB)},
    "Certificate and key files of the API client": {"16 MiB": (input_limits.MAX_CERTIFICATE_BYTES, 16 * MIB)},
    "Certificate, key and client CAs of the server": {"16 MiB": (input_limits.MAX_CERTIFICATE_BYTES, 16 * MIB)},
    "CA, certificate and key of an HTTP extender": {"16 MiB": (input_limits.MAX_CERTIFICATE_BYTES, 16 * MIB)},
    "Reloaded configuration": {"1 MiB": (input_limits.MAX_CONFIG_BYTES, MIB)},
    "Pipe without a writer / with an idle writer": {
        "10 s": (input_limits.PIPE_WRITER_TIMEOUT_SECONDS, 10),
        "300 s": (input_limits.PIPE_DATA_TIMEOUT_SECONDS, 300),
    },
    "Exec plugin, without / with a terminal": {
        "60 s": (exec_plugin.EXEC_PLUGIN_SECONDS, 60),
        "600 s": (exec_plugin.INTERACTIVE_SECONDS, 600),
    },
    "Output of an exec plugin": {"1 MiB": (input_limits.MAX_CREDENTIAL_BYTES, MIB)},
    "CEL expression": {
        "10,240": (environment.MAX_LENGTH, 10_240),
        "10,000": (size_estimate._MAX_ITERATIONS, 10_000),
        "1,000,000": (costs.COST_LIMIT, 1_000_000),
    },
    "Compiled CEL expressions; results of expressions that are cached for a device": {
        "1,024": (resource_slices._MAX_SHORT_EXPRESSIONS, 1024),
        "1,000 characters": (resource_slices._MAX_SHORT_LENGTH, 1000),
        "64 longer": (resource_slices._MAX_LONG_EXPRESSIONS, 64),
        "64": (resource_slices._MAX_CACHED_RESULTS, 64),
    },
    "Search for devices in one call of Filter, on all nodes together": {
        "10 seconds": (DynamicResourcesArgs.apply_defaults({}, FeatureGates())["filterTimeout"], "10s")
    },
    "CEL `find`, `findAll`": {"text/10": (regex._STRING_FACTOR, 10), "pattern/4": (regex._PATTERN_FACTOR, 4)},
    "CEL value / work of one evaluation (estimate at compile time)": {
        "4,000,000": (size_estimate.MAX_SIZE, 4_000_000),
        "250,000,000": (size_estimate.MAX_WORK, 250_000_000),
    },
    "CEL error message": {"300": (messages._MAX_MESSAGE_LENGTH, 300)},
}
"""The figures of each row, each with the value in the code and the same value written out."""

ROWS_WITHOUT_CONSTANT: Final = {
    "Memory of a connection before authentication",
    "Images of whole nodes that are indexed",
    "Taints, features and label values of whole nodes",
    "CPU time and memory of any request",
    "Duplicate YAML key in a recorded cluster",
    "Devices, sockets",
}


def read_rows(heading: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table below *heading*, by the first cell."""
    section = (DOCS / "security.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    return {cells[0]: cells for cells in rows[1:]}


def test_each_row_has_its_figures() -> None:
    assert read_rows("Bounds").keys() == FIGURES.keys() | ROWS_WITHOUT_CONSTANT


@pytest.mark.parametrize("row", FIGURES)
def test_a_figure_is_the_default_of_the_code(row: str) -> None:
    bound = read_rows("Bounds")[row][1]
    for figure, (value, expected_value) in FIGURES[row].items():
        assert figure in bound
        assert value == expected_value, figure


@pytest.mark.parametrize("heading", ["Threats", "Bounds"])
def test_each_row_names_tests_that_exist(heading: str) -> None:
    for row, cells in read_rows(heading).items():
        named_tests = re.findall(r"`(tests/\S+\.py)`: ([^;]+)", cells[-1])
        assert named_tests, row
        for file, names in named_tests:
            functions = set(re.findall(r"^def (test_\w+)\(", Path(ROOT, file).read_text(), re.MULTILINE))
            functions_in_row = set(re.findall(r"test_\w+", names))
            assert functions_in_row, row
            assert functions_in_row <= functions, (row, file)
