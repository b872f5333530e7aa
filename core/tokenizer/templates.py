"""What a tokenizer puts around a prompt (a beginning token, say): its ``post_processor``."""

from typing import NamedTuple

from ..catalogue import tr
from .problems import Malformed, Unsupported, kind_of, mapping, member


class Template(NamedTuple):
    """The ids that go before a prompt's and after them."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    def around(self, inner: "Template") -> "Template":
        """Return the template that applies *inner* first, then this one."""
        return Template(self.before + inner.before, inner.after + self.after)


def build_template(spec: object) -> Template:
    """Return what *spec* adds to a single text (None: nothing).

    `Unsupported` names a kind that is not implemented, `Malformed` says what is wrong with the description.
    """
    if spec is None:
        return Template()
    kind = kind_of(spec)
    if kind == "ByteLevel":  # corrects offsets only
        return Template()
    if kind == "Sequence":
        template = Template()
        for step in member(spec, "processors", list):
            template = build_template(step).around(template)
        return template
    if kind == "TemplateProcessing":
        return _template(spec)
    raise Unsupported(f"post_processor {kind}")


def _template(spec: object) -> Template:
    tokens = member(spec, "special_tokens", dict, {})
    sides: list[list[int]] = [[]]
    for piece in member(spec, "single", list):
        if "Sequence" in mapping(piece, "single"):
            sides.append([])
        else:
            name = member(member(piece, "SpecialToken", dict), "id", str)
            sides[-1] += _ids(member(member(tokens, name, dict), "ids", list))
    if len(sides) != 2:
        raise Unsupported("post_processor TemplateProcessing")
    return Template(tuple(sides[0]), tuple(sides[1]))


def _ids(values: list[object]) -> list[int]:
    ids = [value for value in values if isinstance(value, int)]
    if len(ids) != len(values):
        raise Malformed(tr("the ids of the post-processor are not all whole numbers"))
    return ids
