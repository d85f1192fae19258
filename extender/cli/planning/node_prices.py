"""The prices of nodes, from a label of the nodes or from a file."""

from collections.abc import Iterable

from extender.analysis.input.input_errors import InputError, InputErrorLine
from extender.analysis.recorded_cluster import Recording
from extender.api.kinds.node import Node
from extender.basics.input_limits import shorten
from extender.cli.recording_options import read_document
from extender.cli.terminal import write_error
from extender.config.did_you_mean import did_you_mean
from extender.config.strict_decoding import describe_value
from extender.planning.cluster_totals import NodePriceFunction

_INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


def load_price_function(cost_label: str, price_file: str) -> NodePriceFunction | None:
    """Return the function that finds the price of a node; None if there is neither a label nor a file.

    Args:
        cost_label: a label whose value is the price of the node; empty: no label.
        price_file: a YAML or JSON mapping of node names or instance types to prices; empty: no file. A price
            for the node's name takes precedence over a price for its instance type, and the file over the label.

    Raises:
        InputError: the file is invalid.
    """
    if not cost_label and not price_file:
        return None
    prices = _read_prices(price_file) if price_file else {}

    def get_price(node: Node) -> float | None:
        labels = node.metadata.labels
        for name in (node.metadata.name, *(labels.get(key, "") for key in _INSTANCE_TYPE_LABELS)):
            if name in prices:
                return prices[name]
        return _parse_price(labels.get(cost_label, ""))

    return get_price


def load_prices(cost_label: str, price_file: str, recording: Recording) -> NodePriceFunction | None:
    """Return the function of `load_price_function`. If no node of *recording* has a price, print a warning.

    Raises:
        InputError: the file is invalid.
    """
    get_price = load_price_function(cost_label, price_file)
    nodes = [obj for obj in recording.objects if isinstance(obj, Node)]
    if get_price is not None and nodes and all(get_price(node) is None for node in nodes):
        _warn_about_missing_prices(cost_label, nodes)
    return get_price


def _warn_about_missing_prices(cost_label: str, nodes: Iterable[Node]) -> None:
    labels = {label for node in nodes for label in node.metadata.labels}
    if cost_label and cost_label not in labels:
        write_error(f"no node has a price: none has the label {cost_label}{did_you_mean(cost_label, labels)}")
    else:
        write_error(
            "no node has a price: want the names or instance types of nodes in --prices, or numbers in --cost-label"
        )


def _parse_price(text: str) -> float | None:
    try:
        price = float(text)
    except ValueError:
        return None
    return price if 0 <= price < float("inf") else None


def _read_prices(file: str) -> dict[str, float]:
    location, document = read_document(file)
    if not isinstance(document, dict):
        raise InputError([InputErrorLine(location, "want a mapping of node names or instance types to prices")])
    lines = [
        InputErrorLine(location, f"is {shorten(describe_value(value))}; want a price, 0 or more", path=str(key))
        for key, value in document.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf")
    ]
    if lines:
        raise InputError(lines)
    return {str(key): float(value) for key, value in document.items()}
