"""What the engine says while it works: one frozen event per stage of computing a token.

The order of a run is fixed::

    run     := ChatRendered?  Tokenized  (prefill | decode)*  Finished?
    prefill,
    decode  := Embedded  (AttentionDone  MlpDone  BlockDone){L}  Normalized?  LogitsReady
               SamplingStage{7}  TokenChosen

Letters in shapes: n positions in this step (the whole prompt in prefill, 1 in decode), T positions so far,
D width, H query heads, K key/value heads, d head size, F MLP width, V vocabulary. Arrays are float32 unless
said otherwise, read-only, and never change after the event was given out. Where a field is what TransformerLens
calls a hook, its docstring gives that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .sampling import Stage

Floats = NDArray[np.float32]
FinishReason = Literal["eos", "context", "length", "stopped", "failed"]


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One stage of a run."""

    def told(self) -> dict[str, Any]:
        """What the event tells, by name, in the order of its fields."""
        names: tuple[str, ...] = type(self).__match_args__
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, eq=False)
class ChatRendered(Event):
    """The model's own chat template has turned roles and messages into one text."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Tokenized(Event):
    """The prompt as the model reads it."""

    ids: tuple[int, ...]
    """Token ids [P], what was added included."""
    pieces: tuple[bytes, ...]
    """The exact bytes of each token; empty where the model has no tokenizer."""
    added: tuple[int, ...] = ()
    """Positions of tokens that the prompt's text did not hold: a beginning token, say."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded(Event):
    """Each id has become a vector: its row of the token table, plus its position's where there is one."""

    positions: NDArray[np.int64]
    """Positions [n] of these tokens in the whole text, from 0."""
    token: Floats
    """Token vectors [n, D] (``hook_embed``)."""
    position: Floats | None
    """Position vectors [n, D] (``hook_pos_embed``); None where positions enter later, as with RoPE."""
    sum: Floats
    """What enters block 0 [n, D] (``blocks.0.hook_resid_pre``)."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionDone(Event):
    """Each position has looked back: pattern = softmax(q·kᵀ·scale + mask), output = joined(pattern·v)·W_O + b."""

    layer: int
    query: Floats
    """What these positions look for [H, n, d], unscaled (``attn.hook_q``)."""
    key: Floats
    """What these positions offer to be found by [K, n, d] (``attn.hook_k``)."""
    value: Floats
    """What these positions hand over [K, n, d] (``attn.hook_v``)."""
    pattern: Floats
    """Weights after softmax [H, n, T]: rows sum to 1, the future is 0 (``attn.hook_pattern``)."""
    output: Floats
    """What attention adds to the residual stream [n, D] (``hook_attn_out``)."""


@dataclass(frozen=True, slots=True, eq=False)
class MlpDone(Event):
    """Each position has been worked on by itself: output = activation(x·W_in + b)·W_out + b."""

    layer: int
    hidden: Floats
    """Input of the last matrix [n, F] (``mlp.hook_post``)."""
    output: Floats
    """What the MLP adds to the residual stream [n, D] (``hook_mlp_out``)."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockDone(Event):
    """A block is through: residual = what came in + attention's output + the MLP's output."""

    layer: int
    residual: Floats
    """The residual stream after this block [n, D] (``hook_resid_post``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Normalized(Event):
    """The last norm has run; families without one leave this event out."""

    hidden: Floats
    """The normalised residual stream [n, D] (``ln_final.hook_normalized``)."""


@dataclass(frozen=True, slots=True, eq=False)
class LogitsReady(Event):
    """A score for every token of the vocabulary: how far the vector points each token's way."""

    logits: Floats
    """Scores before any sampling: [1, V] for the last position, [n, V] when everything is captured."""


@dataclass(frozen=True, slots=True, eq=False, match_args=False)
class SamplingStage(Event):
    """One stage between scores and the draw; seven in a row, always the same."""

    name: str
    """One of ``raw, repetition_penalty, temperature, top_k, top_p, min_p, final``."""
    active: bool
    """Whether the settings let this stage change anything."""
    stage: Stage = field(repr=False)
    """The stage's result in its compact form; the arrays below are laid out when somebody looks."""

    __match_args__ = ("name", "active", "values", "kept")

    @property
    def values(self) -> NDArray[np.float64]:
        """Float64 [V]: scores, −inf where a token is out; in ``final`` the probabilities drawn from."""
        return self.stage.values

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Bool [V]: which tokens are still in."""
        return self.stage.kept


@dataclass(frozen=True, slots=True, eq=False)
class TokenChosen(Event):
    """A token was drawn (or put there by a person) and joins the text."""

    id: int
    probability: float
    """Its probability after all stages; 0 for a forced token that the stages had removed."""
    raw_logprob: float
    """Natural logarithm of its probability under the raw softmax, before any stage."""
    uniform: float
    """The random number in [0, 1) that the draw used."""
    forced: bool
    """Whether a person chose it."""


@dataclass(frozen=True, slots=True, eq=False)
class Finished(Event):
    """The run has come to its own end."""

    reason: FinishReason


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """*array* itself, which from now on cannot be written to."""
    array.setflags(write=False)
    return array
