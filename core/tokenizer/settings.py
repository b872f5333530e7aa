"""What the small files beside a tokenizer say: its special tokens, its chat template, its class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..catalogue import tr
from .added import AddedToken
from .problems import Malformed, mapping, member
from .reading import broken, read_object, read_text

_NAMED: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a tokenizer that is not in its vocabulary file."""

    bos_token: str | None = None
    eos_token: str | None = None
    chat_template: str | None = None
    special_names: tuple[str, ...] = ()
    """Names of special tokens, whether or not their ids are given."""
    added: tuple[AddedToken, ...] = ()
    """Added tokens whose ids are given."""
    eos_id: int | None = None
    """The model's end token, where there is exactly one."""
    tokenizer_class: str = ""
    pattern: str | None = None
    """The pattern that cuts text for a rank file (tiktoken's ``pat_str``)."""
    add_prefix_space: bool = False
    add_bos_token: bool = False


def read_settings(folder: Path) -> Settings:
    """Read the settings in *folder*, each of whose files may be absent; `ModelError` names a broken one."""
    config = read_object(folder / "tokenizer_config.json")
    names = read_object(folder / "special_tokens_map.json") | config
    model = read_object(folder / "config.json") | read_object(folder / "generation_config.json")
    try:
        special_names = _special_names(names)
        return Settings(
            bos_token=_name(names.get("bos_token")),
            eos_token=_name(names.get("eos_token")),
            chat_template=_read_template(folder, config),
            special_names=special_names,
            added=_added(config, read_object(folder / "added_tokens.json"), special_names),
            eos_id=_single_id(model.get("eos_token_id")),
            tokenizer_class=member(config, "tokenizer_class", str, ""),
            pattern=member(config, "pat_str", str, "") or None,
            add_prefix_space=member(config, "add_prefix_space", bool, False),
            add_bos_token=member(config, "add_bos_token", bool, False),
        )
    except Malformed as problem:
        raise broken(folder / "tokenizer_config.json", problem) from problem


def _name(value: object) -> str | None:
    """Return the name of a special token, which is written alone or as an object with more about it."""
    if isinstance(value, dict):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        raise Malformed(tr("a special token has the name {name}, which is no text", name=value))
    return value


def _special_names(names: dict[str, Any]) -> tuple[str, ...]:
    more = names.get("additional_special_tokens")
    values = [names.get(key) for key in _NAMED] + (more if isinstance(more, list) else [])
    return tuple(dict.fromkeys(name for value in values if (name := _name(value))))


def _added(config: dict[str, Any], plain: dict[str, Any], special: tuple[str, ...]) -> tuple[AddedToken, ...]:
    """Read tokenizer_config.json's ``added_tokens_decoder`` and what is in added_tokens.json beside it."""
    tokens = {}
    for key, value in member(config, "added_tokens_decoder", dict, {}).items():
        if not (key.isascii() and key.isdecimal() and len(key) < 10):
            raise Malformed(tr("an added token has the id {id}, which is no token id", id=key))
        token = AddedToken.from_json(mapping(value, key) | {"id": int(key)})
        tokens[token.text] = token
    for text in plain:
        if text not in tokens:
            tokens[text] = AddedToken(member(plain, text, int), text, special=text in special)
    return tuple(tokens.values())


def _read_template(folder: Path, config: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return read_text(path)
    value = config.get("chat_template")
    if isinstance(value, list):
        templates = {member(item, "name", str): member(item, "template", str) for item in value}
        value = templates.get("default", next(iter(templates.values()), None))
    if value is not None and not isinstance(value, str):
        raise Malformed(tr("the chat template is no text"))
    return value


def _single_id(value: object) -> int | None:
    ids = value if isinstance(value, list) else [value]
    return ids[0] if len(ids) == 1 and isinstance(ids[0], int) else None
