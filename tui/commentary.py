"""What just happened, in one sentence with its numbers: one for every stage of a pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.attention_stages import (
    attention_mix,
    attention_output,
    attention_rows,
    attention_scores,
    edited_mix,
    head_vectors,
    knows_mlp_output,
    mlp_output,
)
from ..core.catalogue import tr, trn
from ..core.lens import residual_norms
from ..core.sampling import STAGES, SamplingConfig
from ..core.shares import probabilities_at, stage_shares
from ..widgets.notice_line import NoticeView
from ..widgets.numbers import Number, percent
from .cursor import Cursor
from .moment import Draw, Moment
from .stage_names import stage_name
from .stages import Place


def comment(moment: Moment, cursor: Cursor, place: Place | None) -> NoticeView:
    """The sentence for *place*; for stages inside attention it speaks of the head looked at."""
    if place is None:
        return NoticeView("")
    stage = moment.stages.all[place.stage]
    if stage.name == "draw":
        return _drawn(moment, place.step)
    if stage.name in STAGES:
        draw = moment.draw(place.step)
        return NoticeView("") if draw is None else NoticeView(_sampled(moment, draw, stage.name))
    where = Cursor(layer=cursor.layer if stage.layer is None else stage.layer, head=cursor.head)
    return NoticeView(_SENTENCES[stage.name](moment, where, place))


def comment_draft(moment: Moment, place: Place, settings: SamplingConfig) -> str:
    """What the token of *place* would have been under other *settings*."""
    draw = moment.draw(place.step, settings)
    if draw is None:
        return ""
    drawn = moment.trace.steps[place.step].id if place.step < moment.steps else None
    words: dict[str, object] = {"token": moment.name(draw.id)}
    words["share"] = percent(float(draw.table.final[draw.table.ids == draw.id][0]))
    if drawn is None:
        return tr("a preview: ‹{token}› would be the likeliest", **words)
    if draw.id == drawn:
        return tr("a preview: still ‹{token}›, with {share}; enter lets these settings hold from here on", **words)
    return tr("a preview: ‹{token}› with {share}, not ‹{other}›; enter takes it", **words, other=moment.name(drawn))


def _now(moment: Moment, place: Place) -> tuple[int, str]:
    """The position whose output the next token is drawn from, and its token."""
    position = moment.positions(place) - 1
    return position, moment.label(position)


def _tokens(moment: Moment, cursor: Cursor, place: Place) -> str:
    return trn(
        "the prompt is one token: ‹{token}›, number {id} of {vocabulary}",
        "the prompt is {count} tokens; the first is ‹{token}›, number {id} of {vocabulary}",
        moment.prompt_length,
        token=moment.label(0),
        id=f"{moment.trace.prompt_ids[0]:,}",
        vocabulary=f"{moment.trace.model.config.vocabulary:,}",
    )


def _embedding(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    length = float(np.linalg.norm(moment.trace.cache.rows.embedding[position]))
    values = {"token": token, "position": position, "width": moment.trace.model.config.width}
    return tr("‹{token}› at position {position} becomes {width} numbers, {length:.2f} long", **values, length=length)


def _qkv(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    vectors = head_vectors(moment.trace, cursor.layer, cursor.head, position, position + 1)
    q, k, v = (float(np.linalg.norm(vector)) for vector in vectors)
    return tr(
        "‹{token}› in head {head}: query {q:.2f} long, key {k:.2f} long, value {v:.2f} long",
        token=token, head=cursor.head, q=q, k=k, v=v,
    )  # fmt: skip


def _scores(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    trace, T = moment.trace, position + 1
    scores = attention_scores(trace, cursor.layer, cursor.head, position, T, T)[0]
    best = int(np.argmax(scores))
    return trn(
        "‹{token}› meets one key, its own: q·k × scale = {score:.2f}",
        "‹{token}› meets {count} keys; ‹{key}› answers most: q·k × scale = {score:.2f}",
        T, token=token, key=moment.label(best), score=Number(scores[best]),
    )  # fmt: skip


def _mask(moment: Moment, cursor: Cursor, place: Place) -> str:
    T = moment.positions(place)
    if place.step == 0:
        n = T - moment.trace.begun  # queries of this pass
        return tr("the mask hides what comes later: {hidden} of {all} scores", hidden=n * (n - 1) // 2, all=n * T)
    return tr("the mask hides what comes later: the newest token sees all {count}", count=T)


def _softmax(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    weights = attention_rows(moment.trace, cursor.layer, cursor.head, position, position + 1)[0]
    best = int(np.argmax(weights))
    return tr(
        "shares that add up to {sum:.4f}: ‹{token}› gives ‹{key}› {share}",
        sum=float(weights.sum()), token=token, key=moment.label(best), share=percent(float(weights[best])),
    )  # fmt: skip


def _mix(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    if (cursor.layer, cursor.head) in moment.silent_heads(place.step):
        return tr("head {head} is silenced: nothing of it reaches the projection", head=cursor.head)
    trace, layer, head = moment.trace, cursor.layer, cursor.head
    mixed = attention_mix(trace, layer, head, position, position + 1)
    if trace.edits_at_work.touch_head(layer, head):
        edited = edited_mix(trace, layer, position, position + 1)[head]
        return tr(
            "head {head} found for ‹{token}› values {length:.2f} long; the edits hand on {edited:.2f}",
            head=head, token=token, length=float(np.linalg.norm(mixed)), edited=float(np.linalg.norm(edited)),
        )  # fmt: skip
    return tr(
        "head {head} found for ‹{token}›: the values by their shares, {length:.2f} long",
        length=float(np.linalg.norm(mixed)), head=cursor.head, token=token,
    )  # fmt: skip


def _projection(moment: Moment, cursor: Cursor, place: Place) -> str:
    heads = moment.trace.model.config.heads
    who = tr("the only head") if heads == 1 else tr("all {heads} heads", heads=heads)
    if not moment.knows_outputs:
        return tr("{who} through the output matrix, into the residual stream", who=who)
    position, _ = _now(moment, place)
    output = attention_output(moment.trace, cursor.layer, position, position + 1)
    return tr(
        "{who} through the output matrix: attention adds a vector {length:.2f} long",
        who=who, length=float(np.linalg.norm(output)),
    )  # fmt: skip


def _mlp(moment: Moment, cursor: Cursor, place: Place) -> str:
    values = {"layer": cursor.layer, "width": moment.trace.model.config.mlp_width}
    if not knows_mlp_output(moment.trace):
        return tr("the MLP of layer {layer}, {width} wide, works on each token by itself", **values)
    if place.step == moment.steps and place.stage == moment.reached:  # its sum is not there yet
        return tr("the MLP of layer {layer}, {width} wide, has worked on each token by itself", **values)
    position, _ = _now(moment, place)
    length = float(np.linalg.norm(mlp_output(moment.trace, cursor.layer, position, position + 1)))
    return tr("the MLP of layer {layer}, {width} wide, adds a vector {length:.2f} long", **values, length=length)


def _residual(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    norms = residual_norms(moment.trace, position, position + 1, cursor.layer + 1)[:, 0]
    return tr(
        "after layer {layer} the stream of ‹{token}› is {after:.2f} long; it was {before:.2f}",
        layer=cursor.layer, token=token, before=float(norms[-2]), after=float(norms[-1]),
    )  # fmt: skip


def _norm(moment: Moment, cursor: Cursor, place: Place) -> str:
    position, token = _now(moment, place)
    residual = moment.trace.cache.rows.residual[-1, position]
    if moment.trace.model.config.norm == "rms_norm":
        size = float(np.sqrt(np.mean(residual.astype(np.float64) ** 2)))
        return tr("the last norm evens out ‹{token}›: root mean square {size:.3f} before", token=token, size=size)
    values = {"token": token, "mean": Number(residual.mean()), "spread": float(residual.std())}
    return tr("the last norm evens out ‹{token}›: mean {mean:.3f}, spread {spread:.3f} before", **values)


def _logits(moment: Moment, cursor: Cursor, place: Place) -> str:
    draw = moment.draw(place.step)
    if draw is None:
        return ""
    return tr(
        "every one of {count} tokens has a score; ‹{token}› the highest, {score:.2f}",
        count=f"{draw.table.vocabulary:,}",
        token=moment.name(int(draw.table.ids[0])),
        score=Number(draw.table.logits[0]),
    )


_SENTENCES: dict[str, Callable[[Moment, Cursor, Place], str]] = {
    "tokens": _tokens,
    "embedding": _embedding,
    "qkv": _qkv,
    "scores": _scores,
    "mask": _mask,
    "softmax": _softmax,
    "mix": _mix,
    "projection": _projection,
    "mlp": _mlp,
    "residual": _residual,
    "norm": _norm,
    "logits": _logits,
}


def _sampled(moment: Moment, draw: Draw, name: str) -> str:
    """What one sampling stage did."""
    stage = STAGES.index(name)
    share = stage_shares(draw.table, draw.settings, draw.previous)[stage]
    best, now = moment.name(share.best), percent(share.best_share)
    if name == "raw":
        return tr("softmax makes shares of the scores: ‹{token}› has {share}", token=best, share=now)
    if name == "final":
        return trn(
            "1 token is left, evened up to 100 %: ‹{token}›",
            "{count} tokens are left, evened up to 100 %; ‹{token}› leads with {share}",
            share.left, token=best, share=now,
        )  # fmt: skip
    setting = getattr(draw.settings, name)
    if not share.active:
        return tr("{stage} is off and changes nothing", stage=stage_name(name))
    if name == "repetition_penalty":
        seen = len(set(draw.previous))
        return trn(
            "the penalty weakens the one token that is in the text, by {by:g}",
            "the penalty weakens {count} tokens that are in the text, by {by:g}",
            seen, by=setting,
        )  # fmt: skip
    if name == "temperature":
        before = float(
            probabilities_at(draw.table, stage - 1, draw.settings, draw.previous)[draw.table.ids == share.best][0]
        )
        values = {"by": setting, "token": best, "before": percent(before), "after": now}
        return tr("scores are divided by {by:g}: ‹{token}› goes from {before} to {after}", **values)
    values = {"stage": stage_name(name), "by": setting, "left": f"{share.left:,}", "mass": percent(share.removed_mass)}
    return trn(
        "{stage} {by:g} takes out one token, {mass}; {left} left",
        "{stage} {by:g} takes out {count} tokens, {mass} together; {left} left",
        share.removed, **values,
    )  # fmt: skip


def _drawn(moment: Moment, step: int) -> NoticeView:
    """How the token of *step* came about."""
    if step >= moment.steps:
        return NoticeView("")
    trace, done = moment.trace, moment.trace.steps[step]
    values: dict[str, object] = {
        "step": step,
        "token": moment.label(moment.prompt_length + step),
        "share": percent(done.probability),
        "uniform": f"{done.uniform:.4f}",
        "raw": percent(float(np.exp(done.raw_logprob))),
        "bits": f"{Number(-done.raw_logprob / np.log(2)):.1f}",
    }
    if done.forced:
        return NoticeView(
            tr("token {step}: ‹{token}› was put by hand; to the model, raw {raw}, {bits} bits of surprise", **values),
            short=tr("token {step}: ‹{token}› was put by hand", **values),
        )
    if trace.settings_at(step).is_greedy:
        return NoticeView(
            tr("token {step}: ‹{token}› is the likeliest; raw {raw}, {bits} bits of surprise", **values),
            short=tr("token {step}: ‹{token}› is the likeliest", **values),
        )
    return NoticeView(
        tr(
            "token {step}: ‹{token}› drawn with {share} by u = {uniform}; raw it had {raw}, {bits} bits of surprise",
            **values,
        ),
        short=tr("token {step}: ‹{token}› drawn with {share} by u = {uniform}", **values),
    )
