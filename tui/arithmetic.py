"""How the number under the cursor comes about, written out with the numbers it is made of."""

from __future__ import annotations

import numpy as np

from ..core.attention_stages import attention_rows, attention_scores, head_vectors
from ..core.catalogue import tr
from ..widgets.attention_map import AttentionView
from ..widgets.numbers import Number, percent
from .moment import Moment


def weight_arithmetic(moment: Moment, view: AttentionView) -> str:
    """A cell of the attention map: from the product of query and key to the share that softmax makes of it."""
    trace, layer, head, query, key = moment.trace, view.layer, view.head, view.query, view.key
    q, _, _ = head_vectors(trace, layer, head, query, query + 1)
    _, k, _ = head_vectors(trace, layer, head, key, key + 1)
    scores = attention_scores(trace, layer, head, query, query + 1, query + 1)[0].astype(np.float64)
    scale = trace.model.config.attention_scale(layer)
    product = float(q[0].astype(np.float64) @ k[0].astype(np.float64))
    words: dict[str, object] = {"product": Number(product), "scale": scale, "score": Number(product * scale)}
    if key > query:
        return tr("q·k {product:.3f} × {scale:.4f} = {score:.3f}; the mask hides it: the key comes later", **words)
    if view.kind != "weights":
        return tr("q·k {product:.3f} × {scale:.4f} = {score:.3f}", **words)
    words |= {"best": Number(scores.max()), "sum": float(np.exp(scores - scores.max()).sum())}
    words["weight"] = float(attention_rows(trace, layer, head, query, query + 1)[0, key])
    return tr(
        "q·k {product:.3f} × {scale:.4f} = {score:.3f}; e^({score:.3f} − {best:.3f}) / {sum:.3f} = {weight:.4f}",
        **words,
    )


def share_arithmetic(moment: Moment, step: int, id: int) -> str | None:
    """A candidate: from its score to its share before and after the stages. None before there are scores."""
    draw = moment.draw(step)
    if draw is None:
        return None
    table = draw.table
    [row, *_] = np.flatnonzero(table.ids == id)
    words: dict[str, object] = {
        "token": moment.name(int(table.ids[row])),
        "score": Number(table.logits[row]),
        "sum": Number(table.stage_logsumexp[0]),
        "raw": percent(float(table.raw[row])),
        "final": percent(float(table.final[row])),
    }
    return tr("‹{token}›: e^({score:.3f} − {sum:.3f}) = {raw} before the stages, {final} after them", **words)
