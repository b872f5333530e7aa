"""Rendering a chat template: Jinja, with what Hugging Face adds to it, within limits.

A template comes with a model, so it is somebody else's program. Jinja's sandbox keeps it away from what is
not its business; what it may use up is limited here: steps (calls and turns of loops) and sizes of values.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sized
from datetime import datetime
from typing import Any, Final, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ..catalogue import tr

MAX_STEPS: Final = 100_000
MAX_SIZE: Final = 10_000_000
"""Characters of a string, members of a list, bits of a number."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment in which one template is rendered once."""

    intercepted_binops = frozenset({"+", "*", "**"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        self._steps = 0
        self.globals |= {"raise_exception": _raise, "strftime_now": _now}
        self.filters |= {"tojson": _to_json, "counted": self._counted, "concatenated": _concatenated}

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Return what *template* writes about *values*; any exception may come out of it."""
        tree = _Limited().visit(self.parse(template))
        return _concatenated(self.from_string(tree).generate(values))

    def call(__self, __context: Context, __function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function on the template's behalf."""
        __self._step()
        return super().call(__context, __function, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Do arithmetic on the template's behalf."""
        _limit(_resulting_size(operator, left, right))
        return super().call_binop(context, operator, left, right)

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._step()
            yield value

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TemplateError(tr("it takes more than {count} steps", count=MAX_STEPS))


class _Limited(NodeTransformer):
    """Puts a counter into every loop, and a limit on every ``~``, which Jinja does not let one intercept."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "concatenated", [], [], None, None)


class _Generation(Extension):
    """Hugging Face's mark around what the model itself wrote; it leaves no trace in the text."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what stands between the two tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _resulting_size(operator: str, left: object, right: object) -> int:
    match operator, left, right:
        case "+", Sized(), Sized():
            return len(left) + len(right)
        case ("*", Sized() as values, int(times)) | ("*", int(times), Sized() as values):
            return len(values) * times
        case "*", int(), int():
            return left.bit_length() + right.bit_length()
        case "**", int(), int():
            return left.bit_length() * right
    return 0


def _limit(size: int) -> None:
    if size > MAX_SIZE:
        raise TemplateError(tr("it builds something larger than {size}", size=MAX_SIZE))


def _concatenated(parts: Iterable[Any]) -> str:
    texts: list[str] = []
    size = 0
    for part in parts:
        texts.append(str(part))
        size += len(texts[-1])
        _limit(size)
    return "".join(texts)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(format: str) -> str:
    return datetime.now().strftime(format)


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    """Write *value* as JSON; Jinja's own filter would escape it for HTML."""
    return json.dumps(value, **{"ensure_ascii": False, "indent": indent} | options)
