"""Reject expressions whose values could fill the memory.

The library limits the iterations of loops, but not the size of strings and lists. `cel.bind` and `+` can double a value
twenty times. So the maximum size of each value and the maximum work are estimated from the compiled expression. The API
server also estimates the maximum cost of an expression, and has a lower limit.

Source: dynamic-resource-allocation/cel/compile.go, newCostEstimator; cel-go/checker/cost.go (1.36).
"""

from typing import Any, Final

from extender.dra.cel.syntax import get_kind, get_root

MAX_SIZE: Final = 4_000_000
"""The maximum size of a value: the characters and elements in it."""

MAX_WORK: Final = 250_000_000
"""The maximum number of characters and elements that an evaluation reads or writes."""

_MAX_ITERATIONS: Final = 10_000  # the library's limit for one evaluation
_MAX_RANGE: Final = 1_000_000
_DEVICE_SIZE: Final = 8192  # 32 attributes and capacities with names and values of 64 to 126 characters
_MAX_NAME_SIZE: Final = 64  # the maximum length of the driver's name and of the names of types
_MIN_DEVICE_ENTRY_SIZE: Final = 32  # the key and the value of an entry have at least this size
_DEVICE_TO_VALUE_SIZE_RATIO: Final = 8  # 8192 for a device or a domain, 1024 for a value
_FORMATTED_SIZE: Final = 1000  # the maximum precision of a number
_MULTIPLYING_CALLS: Final = frozenset({"join", "replace"})
_FREE_CALLS: Final = frozenset(
    {"_&&_", "_||_", "!_", "_<_", "_>_", "_<=_", "_>=_", "-_", "size", "@not_strictly_false"}
)
_BOOLEAN_CALLS: Final = frozenset({"@in", "matches", "contains", "startsWith", "endsWith"})


class SizeLimitError(ValueError):
    """The estimate exceeds a limit."""


def check_size(checked_expression: Any) -> None:
    """Check the estimated sizes and the estimated work of an expression from `syntax.parse_expression`.

    Raises:
        SizeLimitError: a value or the work may exceed its limit.
    """
    _Estimator().estimate(get_root(checked_expression), {}, 1)


class _Estimator:
    """Estimates the sizes of values, and adds up the work."""

    def __init__(self) -> None:
        self.work = 0

    def estimate(self, node: Any, variables: dict[bytes, int], repetitions: int) -> int:
        """Return the maximum size of the value of *node*, which is evaluated at most *repetitions* times."""
        kind = get_kind(node)
        part: Any = getattr(node, kind) if kind else None
        match kind:
            case "const":
                size = max(len(part.text), len(part.data), 1)
            case "ident":
                is_device = part.name.startswith(b"device") and part.name != b"device.driver"
                size = variables.get(part.name, _DEVICE_SIZE if is_device else _MAX_NAME_SIZE)
            case "select":
                size = self._get_part_size(part.operand, self.estimate(part.operand, variables, repetitions))
            case "list" | "struct":
                size = self._estimate_container(part, variables, repetitions)
            case "call":
                size = self._estimate_call(part, variables, repetitions)
            case "comprehension":
                size = self._estimate_comprehension(part, variables, repetitions)
            case _:
                size = 1
        if size > MAX_SIZE:
            raise SizeLimitError
        return size

    def _add_work(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise SizeLimitError

    def _get_part_size(self, container: Any, size: int) -> int:
        """Return the size of a field or element. The values of a device are much smaller than the device."""
        return max(1, size // _DEVICE_TO_VALUE_SIZE_RATIO) if _is_part_of_device(container) else size

    def _estimate_container(self, container: Any, variables: dict[bytes, int], repetitions: int) -> int:
        if hasattr(container, "elements"):
            nodes = list(container.elements)
        else:
            nodes = [node for entry in container.entries for node in (entry.key, entry.value)]
        size = 1 + sum(self.estimate(node, variables, repetitions) for node in nodes)
        self._add_work(size * repetitions)
        return size

    def _estimate_call(self, call: Any, variables: dict[bytes, int], repetitions: int) -> int:
        operands = [*([call.target] if call.HasField("target") else []), *call.args]
        sizes = [self.estimate(operand, variables, repetitions) for operand in operands]
        function = call.function.decode()
        if function in _FREE_CALLS:
            return 1
        if function == "_?_:_":
            return max(sizes[1:])
        if function in {"_[_]", "_[?_]"}:
            return self._get_part_size(operands[0], sizes[0])
        if function in {"_==_", "_!=_"}:  # values of different sizes are not compared further
            self._add_work(min(sizes) * repetitions)
            return 1
        if function in _MULTIPLYING_CALLS:
            size = sizes[0] * max(1, sizes[-1])
        elif function == "lists.range":
            constant = _find_constant(call.args[0])
            size = min(constant, _MAX_RANGE) if constant > 0 else _MAX_RANGE
        else:
            formatted_count = (len(operands[-1].list.elements) or sizes[-1]) if function == "format" else 0
            size = sum(sizes) + 1 + _FORMATTED_SIZE * formatted_count
        self._add_work(size * repetitions)
        return 1 if function in _BOOLEAN_CALLS else size

    def _estimate_comprehension(self, loop: Any, variables: dict[bytes, int], repetitions: int) -> int:
        range_size = self.estimate(loop.iter_range, variables, repetitions)
        is_bind_macro = loop.iter_range.HasField("list") and not loop.iter_range.list.elements
        range_length = range_size // _MIN_DEVICE_ENTRY_SIZE if _is_part_of_device(loop.iter_range) else range_size
        iterations = 0 if is_bind_macro else min(max(range_length, 1), _MAX_ITERATIONS)
        size = self.estimate(loop.accu_init, variables, repetitions)
        if iterations:
            element_size = -(-range_size // iterations)  # the mean, since all elements together have the range's size
            inner = {**variables, loop.iter_var: element_size, loop.iter_var2: element_size, loop.accu_var: 1}
            inner_repetitions = min(repetitions * iterations, _MAX_ITERATIONS)
            self.estimate(loop.condition, inner, inner_repetitions)
            size += iterations * self.estimate(loop.step, inner, inner_repetitions)
        return self.estimate(loop.result, {**variables, loop.accu_var: size}, repetitions)


def _is_part_of_device(node: Any) -> bool:
    while not node.HasField("ident"):
        if node.HasField("select"):
            node = node.select.operand
        elif node.HasField("call") and node.call.args:
            node = node.call.args[0]
        else:
            return False
    return bool(node.ident.name.startswith(b"device"))


def _find_constant(node: Any) -> int:
    """Return the constant in `lists.range`, which `call_rewrites` binds to a variable; 0 if there is none."""
    if node.HasField("comprehension"):
        node = node.comprehension.accu_init
    return int(node.const.number) if node.HasField("const") else 0
