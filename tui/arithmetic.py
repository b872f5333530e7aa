"""How the number under the cursor comes about, written out with the numbers it is made of.

Every function gives a sentence, and after it the same in fewer words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.attention_stages import attention_rows, attention_scores, head_vectors
from ..core.catalogue import tr
from ..core.sampling import SamplingConfig
from ..widgets.attention_map import AttentionMap, AttentionView
from ..widgets.candidate_bars import CandidateBars, CandidatesView
from ..widgets.embedding_strips import EmbeddingStrips, EmbeddingView, sum_of
from ..widgets.layer_table import LayersView, LayerTable
from ..widgets.numbers import Number, percent
from ..widgets.panel import Panel
from ..widgets.sampling_stages import SamplingStages, SamplingView
from ..widgets.token_stream import TokenStream, TokenStreamView
from .cursor import Cursor
from .moment import Draw, Moment
from .stages import Place

Told = tuple[str, str]


def arithmetic(
    panel: Panel[Any], moment: Moment, cursor: Cursor, place: Place, settings: SamplingConfig | None = None
) -> Told | None:
    """The arithmetic of what *panel* has under the cursor, under *settings* where others are tried.

    None where there is no number.
    """
    match panel, panel.view if panel.display else None:
        case AttentionMap(), AttentionView() as view if view.seen(view.query):
            return weight_arithmetic(moment, view)
        case CandidateBars(), CandidatesView() as bars:
            draw = moment.draw(bars.step, settings)
            return share_arithmetic(moment, draw, bars.rows[bars.pointed].id) if draw else None
        case SamplingStages(), SamplingView():
            draw = moment.draw(place.step, settings)
            return share_arithmetic(moment, draw, draw.id) if draw else None
        case LayerTable(), LayersView() as layers:
            return lens_arithmetic(moment, layers)
        case EmbeddingStrips(), EmbeddingView() as strips if strips.parts:
            return dimension_arithmetic(strips)
        case TokenStream(), TokenStreamView():
            query, key = cursor.cell or (0, 0)
            in_text = key < 0  # a token of the prompt was chosen there, and no cell of the map
            return surprise_arithmetic(moment, query if in_text else moment.positions(place))
    return None


def weight_arithmetic(moment: Moment, view: AttentionView) -> Told:
    """A cell of the attention map: from the product of query and key to the share that softmax makes of it."""
    trace, layer, head, query, key = moment.trace, view.layer, view.head, view.query, view.key
    q, _, _ = head_vectors(trace, layer, head, query, query + 1)
    _, k, _ = head_vectors(trace, layer, head, key, key + 1)
    scores = attention_scores(trace, layer, head, query, query + 1, query + 1)[0].astype(np.float64)
    scale = trace.model.config.attention_scale(layer)
    product = float(q[0].astype(np.float64) @ k[0].astype(np.float64))
    words: dict[str, object] = {"product": Number(product), "scale": scale, "score": Number(product * scale)}
    score = tr("q·k {product:.3f} × {scale:.6g} = {score:.3f}", **words)
    if key > query:
        return tr("{score}; the mask hides it: the key comes later", score=score), score
    if view.kind != "weights":
        return score, score
    best = float(scores.max())
    words |= {"best": _taken_away(best), "sum": float(np.exp(scores - best).sum())}
    words["weight"] = float(attention_rows(trace, layer, head, query, query + 1)[0, key])
    share = tr("e^({score:.3f} − {best}) / {sum:.3f} = {weight:.4f}", **words)
    whence = tr("{best} is the largest score, {sum:.3f} the sum over all keys", **words)
    return f"{score}; {share}; {whence}", f"{score}; {share}"


def _taken_away(number: float) -> str:
    """*number* as it stands behind a minus."""
    return f"({Number(number):.3f})" if number < 0 else f"{number:.3f}"


def share_arithmetic(moment: Moment, draw: Draw, id: int) -> Told:
    """A candidate of *draw*: from its score to its share before and after the stages."""
    table = draw.table
    [row, *_] = np.flatnonzero(table.ids == id)
    words: dict[str, object] = {
        "token": moment.name(int(table.ids[row])),
        "score": Number(table.logits[row]),
        "sum": _taken_away(float(table.stage_logsumexp[0])),
        "raw": percent(float(table.raw[row])),
        "final": percent(float(table.final[row])),
    }
    share = tr("‹{token}›: e^({score:.3f} − {sum}) = {raw} before the stages, {final} after them", **words)
    return tr("{share}; {sum} is log Σ e^score over all tokens", share=share, **words), share


def dimension_arithmetic(view: EmbeddingView) -> Told:
    """A dimension of the embedding: its number in every part, and in their sum."""
    parts = [f"{name} {Number(values[view.looked_at]):.6f}" for name, values in view.parts]
    told = tr("dimension {dimension}: {sum}", dimension=view.looked_at, sum=sum_of(parts))
    return tr("‹{token}›, {told}", token=view.token, told=told), told


def lens_arithmetic(moment: Moment, view: LayersView) -> Told | None:
    """A layer of the lens: whence its likeliest token. None where the pass has not come to it."""
    row = view.rows[view.layer]
    if not row.best or row.norm is None:
        return None
    token, share = row.best[0]
    words = {"layer": row.name, "length": row.norm, "token": token, "share": percent(share)}
    short = tr("{layer} would say ‹{token}›, {share}", **words)
    if moment.trace.model.config.final_norm:
        told = tr("{layer}: its stream, {length:.2f} long, through the last norm and the unembedding", **words)
    else:
        told = tr("{layer}: its stream, {length:.2f} long, through the unembedding", **words)
    return tr("{told}; softmax gives ‹{token}› {share}", told=told, **words), short


def surprise_arithmetic(moment: Moment, index: int) -> Told | None:
    """A token of the text: how unexpected it was. None where that is not known."""
    bits = moment.cells[index].surprisal if index < len(moment.cells) else None
    if bits is None:
        return None
    words = {"token": moment.label(index), "share": f"{Number(2.0**-bits):.4g}", "bits": Number(bits)}
    told = tr("‹{token}›: −log₂ {share} = {bits:.2f} bits of surprise", **words)
    return tr("{told}; {share} is what the model gave it before it was there", told=told, **words), told
