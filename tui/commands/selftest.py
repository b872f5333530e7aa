"""``cutaway selftest``: check on a real run that the numbers add up."""

from __future__ import annotations

import argparse

from ...core.catalogue import tr, trn
from ..cli import DONE, complain
from ..options import add_model_options, read_source, resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...core.checks import check_model
    from ...widgets.drawable import drawable
    from ..start import prepare

    options = resolve(arguments)
    generation = prepare(options, read_source(options, piped=False))
    model, ids = generation.model, generation.trace.prompt_ids
    room = model.config.positions - len(ids) + 1
    name = drawable(model.name, spaces=False)
    print(trn("{model}: 1 token of prompt", "{model}: {count} tokens of prompt", len(ids), model=name))
    failures = 0
    for check in check_model(model, ids, min(16, room)):
        failures += not check.holds
        mark = tr("ok") if check.holds else tr("FAILED")
        print(
            f"  {mark:<7}{check.claim:<56} {check.deviation:.1e}  ({tr('at most {limit:.0e}', limit=check.tolerance)})"
        )
    if failures:
        return complain(trn("one of the invariants does not hold", "{count} of the invariants do not hold", failures))
    return DONE
