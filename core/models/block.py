"""One layer of a decoder: attention and MLP, each added to the residual stream, and where the norms stand."""

from __future__ import annotations

from dataclasses import dataclass

from .attention import Attention
from .parts import Floats, GatedMlp, Mlp, Norm


@dataclass(frozen=True, slots=True)
class Block:
    """Norms first: residual += attention(norm(residual)); residual += mlp(norm(residual))."""

    attention_norm: Norm
    attention: Attention
    mlp_norm: Norm
    mlp: Mlp | GatedMlp

    def attention_input(self, residual: Floats) -> Floats:
        """What attention works on, from what came in."""
        return self.attention_norm(residual)

    def after_attention(self, residual: Floats, attended: Floats) -> Floats:
        """The stream in the middle of the layer."""
        return residual + attended

    def mlp_input(self, middle: Floats) -> Floats:
        """What the MLP works on, from the middle of the layer."""
        return self.mlp_norm(middle)

    def after_mlp(self, middle: Floats, worked: Floats) -> Floats:
        """The stream after the layer."""
        return middle + worked

    @property
    def sum_norms(self) -> tuple[Norm | None, Norm | None]:
        """The norms that the sum after attention and the sum after the MLP go through."""
        return None, None


@dataclass(frozen=True, slots=True)
class PostNormBlock(Block):
    """Norms last, as in Vaswani et al. 2017: residual = norm(residual + attention(residual)), the MLP likewise."""

    def attention_input(self, residual: Floats) -> Floats:
        return residual

    def after_attention(self, residual: Floats, attended: Floats) -> Floats:
        return self.attention_norm(residual + attended)

    def mlp_input(self, middle: Floats) -> Floats:
        return middle

    def after_mlp(self, middle: Floats, worked: Floats) -> Floats:
        return self.mlp_norm(middle + worked)

    @property
    def sum_norms(self) -> tuple[Norm | None, Norm | None]:
        return self.attention_norm, self.mlp_norm
