"""``cutaway bench``: how fast a model runs here, and what showing it costs."""

from __future__ import annotations

import argparse
import json

from ...core.catalogue import tr
from ...core.errors import UsageError
from ...widgets.numbers import percent
from ..cli import DONE
from ..options import add_speed_options, resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_speed_options(parser)
    parser.add_argument("--prompt-tokens", type=int, default=32, metavar="N", help=tr("length of the prompt (32)"))
    parser.add_argument("--json", action="store_true", help=tr("print JSON"))


def run(arguments: argparse.Namespace) -> int:
    options = resolve(arguments)
    from ...core.benchmark import measure
    from ...core.models import load_model
    from ..live import live_rate
    from ..start import limit_threads

    limit_threads(options.threads)
    model = load_model(options.model)
    prompt, tokens = options.prompt_tokens, options.max_new_tokens
    if not 0 < prompt < model.config.positions:
        most = model.config.positions - 1
        raise UsageError(
            tr("a prompt of {count} tokens does not fit", count=prompt),
            where="--prompt-tokens",
            hint=tr("choose from 1 to {most}", most=most),
        )
    tokens = min(tokens, model.config.positions - prompt)
    if tokens < 2:
        raise UsageError(tr("a rate needs two tokens or more"), where="--max-new-tokens")
    measure(model, prompt, min(tokens, 4))  # the first time, weights come from the disk
    plain, whole = measure(model, prompt, tokens), measure(model, prompt, tokens, "all")
    live = live_rate(model, prompt, tokens)
    figures = {
        "model": model.name,
        "prompt_tokens": prompt,
        "new_tokens": tokens,
        "first_token_seconds": plain.first_token_seconds,
        "decode_tokens_per_second": plain.decode_tokens_per_second,
        "limit_tokens_per_second": plain.limit_tokens_per_second,
        "bandwidth_gb_per_second": plain.bandwidth_gb_per_second,
        "share_of_limit": plain.share_of_limit,
        "capture_all_tokens_per_second": whole.decode_tokens_per_second,
        "capture_all_cost": 1 - whole.decode_tokens_per_second / plain.decode_tokens_per_second,
        "app_tokens_per_second": live,
        "app_cost": 1 - live / plain.decode_tokens_per_second,
    }
    print(json.dumps(figures) if options.json else _told(figures, percent(plain.share_of_limit)))
    return DONE


def _told(figures: dict[str, object], share: str) -> str:
    """The figures in sentences; *share* is that of the limit."""
    from ...widgets.drawable import drawable

    words = figures | {"model": drawable(str(figures["model"]), spaces=False), "share": share}
    lines = [
        tr("{model}, {prompt_tokens} tokens of prompt and {new_tokens} more", **words),
        tr("  first token after    {first_token_seconds:8.3f} s", **words),
        tr("  then                 {decode_tokens_per_second:8.1f} tokens/s", **words),
        tr(
            "  memory would allow   {limit_tokens_per_second:8.1f} tokens/s ({bandwidth_gb_per_second:.1f} GB/s); "
            "reached {share} of it",
            **words,
        ),
        tr("  keeping everything   {capture_all_tokens_per_second:8.1f} tokens/s", **words),
        tr("  with the app live    {app_tokens_per_second:8.1f} tokens/s", **words),
    ]
    return "\n".join(lines)
