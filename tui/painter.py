"""Gives every panel that is shown its view of the moment at the cursor.

What needs the weights is asked of the engine's thread; a panel keeps what it showed until the answer is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.screen import Screen

from ..core.catalogue import tr
from ..core.trace import Trace
from ..widgets.attention_map import AttentionMap
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.embedding_strips import EmbeddingStrips
from ..widgets.heads_map import HeadsMap
from ..widgets.layer_table import LayerTable
from ..widgets.panel import Panel
from ..widgets.sampling_stages import SamplingStages
from ..widgets.token_stream import TokenStream
from .cursor import Cursor
from .inquiries import Inquiry
from .moment import Moment
from .runs import Run
from .settings_draft import Draft
from .stage_names import placed_name
from .stages import Place
from .views.attention import Shown, attention_view
from .views.candidates import candidates_view
from .views.embedding import EmbeddingFound, embedding_view, find_embedding
from .views.heads import HeadsFound, find_heads, heads_view
from .views.layers import LensFound, find_lens, layers_view
from .views.sampling import sampling_view
from .views.text import text_view


@dataclass(frozen=True, slots=True)
class Scene:
    """What is to be shown: a run, where somebody looks, and what is tried there."""

    run: Run
    cursor: Cursor
    place: Place | None
    """None before there is anything to look at."""
    draft: Draft | None = None
    selected: int = 0
    """The sampling setting that keys are at."""

    @property
    def moment(self) -> Moment:
        return self.run.moment


class Painter:
    """Draws scenes into the panels of a screen."""

    def __init__(self, screen: Screen[None]) -> None:
        self.text = screen.query_one(TokenStream)
        self.attention = screen.query_one(AttentionMap)
        self.candidates = screen.query_one(CandidateBars)
        self.heads = screen.query_one(HeadsMap)
        self.layers = screen.query_one(LayerTable)
        self.embedding = screen.query_one(EmbeddingStrips)
        self.sampling = screen.query_one(SamplingStages)
        self.lens: Inquiry[LensFound] = Inquiry()
        self.vectors: Inquiry[EmbeddingFound] = Inquiry()
        self.maps: Inquiry[HeadsFound] = Inquiry()

    def wait(self, sentence: str) -> None:
        """Have every panel but the text say why it is empty."""
        for panel in (self.attention, self.candidates, self.heads, self.layers, self.embedding, self.sampling):
            panel.wait(sentence)

    def settled(self, scene: Scene) -> bool:
        """Whether everything that is shown is about the moment of *scene*."""
        whole = self.maps.value is None or self.maps.value.whole or not self.heads.display
        return whole and all(inquiry.key == key for inquiry, key in self._questions(scene))

    def forget(self) -> None:
        """Another text is looked at."""
        for inquiry in (self.lens, self.vectors, self.maps):
            inquiry.forget()

    def draw(self, scene: Scene) -> None:
        """Show *scene* in the panels that are on the screen."""
        if scene.place is None:
            self.text.show(text_view(scene.moment, None))
            return
        attention = self._draw_attention(scene, scene.place)
        if self.text.display:
            self.text.show(text_view(scene.moment, scene.place, attention))
        if self.candidates.display:
            self._draw_candidates(scene, scene.place)
        if self.sampling.display:
            self._draw_sampling(scene, scene.place)
        if self.heads.display:
            self._draw_heads(scene, scene.place)
        if self.layers.display:
            self._draw_layers(scene, scene.place)
        if self.embedding.display:
            self._draw_embedding(scene, scene.place)

    def _draw_attention(self, scene: Scene, place: Place) -> Shown:
        if not self.attention.display:
            return None
        view = attention_view(scene.moment, scene.cursor, place, self.attention.visible_queries, self.attention.view)
        if view is None:
            self.attention.wait(tr("the pass has not come to layer {layer}", layer=scene.cursor.layer))
        else:
            self.attention.show(view)
        return view

    def _draw_candidates(self, scene: Scene, place: Place) -> None:
        settings = scene.draft.settings if scene.draft else None
        visible = self.candidates.visible_rows()
        view = candidates_view(scene.moment, scene.cursor, place, visible, settings)
        view = view or candidates_view(scene.moment, scene.cursor, place, visible)
        if view is None:
            self.candidates.wait(_no_scores(scene.moment, place))
        else:
            self.candidates.show(view)

    def _draw_sampling(self, scene: Scene, place: Place) -> None:
        view = sampling_view(scene.moment, place, scene.draft, scene.selected)
        if view is None:
            self.sampling.wait(_no_scores(scene.moment, place))
        else:
            self.sampling.show(view)

    def _draw_heads(self, scene: Scene, place: Place) -> None:
        moment, T = scene.moment, scene.moment.positions(place)
        layers = moment.stages.attended(place.stage)
        key = _heads_key(scene, place)
        found = self.maps.value
        if found is not None and self.maps.key == key and not found.whole:
            self.maps.key = ()  # there was no time for all of them: go on
        self.maps.ask(scene.run.runner, key, lambda: find_heads(moment.overview, place.step, layers, T))
        if found is not None and found.trace is moment.trace:
            self.heads.show(heads_view(moment, scene.cursor, found))

    def _draw_layers(self, scene: Scene, place: Place) -> None:
        trace, passed = scene.moment.trace, scene.moment.stages.passed(place.stage)
        step = place.step
        self.lens.ask(scene.run.runner, _lens_key(scene, place), lambda: find_lens(trace, step, passed))
        found = self.lens.value
        if self.lens.problem:
            self.layers.wait(drawable(self.lens.problem, spaces=False))
        if found is None or self.lens.key[0] is not trace:
            return
        if found.step == step or found.step < scene.moment.steps:  # an older answer is about a whole pass
            seen = place if found.step == step else Place(found.step, scene.moment.stages.last)
            self.layers.show(layers_view(scene.moment, scene.cursor, seen, found))

    def _draw_embedding(self, scene: Scene, place: Place) -> None:
        trace, position = key = _vectors_key(scene, place)
        self.vectors.ask(scene.run.runner, key, lambda: find_embedding(trace, position))
        found = self.vectors.value
        if self.vectors.problem:
            self.embedding.wait(drawable(self.vectors.problem, spaces=False))
        if found is not None and self.vectors.key[0] is trace:
            self.embedding.show(embedding_view(scene.moment, scene.cursor, found))

    def _questions(self, scene: Scene) -> list[tuple[Inquiry[Any], tuple[object, ...]]]:
        if (place := scene.place) is None:
            return []
        asked: list[tuple[Panel[Any], Inquiry[Any], tuple[object, ...]]] = [
            (self.layers, self.lens, _lens_key(scene, place)),
            (self.embedding, self.vectors, _vectors_key(scene, place)),
            (self.heads, self.maps, _heads_key(scene, place)),
        ]
        return [(inquiry, key) for panel, inquiry, key in asked if panel.display]


def _lens_key(scene: Scene, place: Place) -> tuple[object, ...]:
    """What the lens depends on: the text, the token, how far its pass has come, and whether the next one is known."""
    return scene.moment.trace, place.step, scene.moment.stages.passed(place.stage), place.step < scene.moment.steps


def _heads_key(scene: Scene, place: Place) -> tuple[object, ...]:
    """What the small maps depend on: the text, the token, and how far its pass has come."""
    return scene.moment.trace, place.step, scene.moment.stages.attended(place.stage)


def _vectors_key(scene: Scene, place: Place) -> tuple[Trace, int]:
    """The position whose embedding is shown: the one that was pointed at, or the newest."""
    T = scene.moment.positions(place)
    return scene.moment.trace, min(scene.cursor.cell[0], T - 1) if scene.cursor.cell else T - 1


def _no_scores(moment: Moment, place: Place) -> str:
    return tr("no logits yet: the pass is at {stage}", stage=placed_name(moment.stages.all[place.stage]))
