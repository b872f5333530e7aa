"""The main screen: what it shows, and all that can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from ..core.errors import CutawayError
from ..widgets.attention_map import AttentionMap
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.embedding_strips import EmbeddingStrips
from ..widgets.heads_map import HeadsMap
from ..widgets.key_line import KeyLine
from ..widgets.layer_table import LayerTable
from ..widgets.panel import Panel
from ..widgets.picture import screen_lines
from ..widgets.stage_strip import StageStrip
from ..widgets.token_stream import TokenStream
from .arithmetic import arithmetic
from .captions import caption, picture_name
from .choosing import Choosing
from .headlines import strip_stage
from .keys import bindings
from .layout import PANELS
from .pictures import save_picture
from .prompting import Prompting
from .stages import Place
from .stepping import Stepping


class MainScreen(Stepping, Choosing, Prompting):
    """The screen with its keys: panels, pointing at things, pictures, help."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    @dataclass
    class PictureWritten(Message):
        """A picture was written, or could not be."""

        sentence: str
        short: str

    def action_arithmetic(self) -> None:
        """Write out how the number under the cursor comes about: of the panel that keys are in, or of attention."""
        panel = self._panel_in_focus() or self.query_one(AttentionMap)
        settings = self.draft.settings if self.draft else None
        told = None
        if self.moment and self.place:
            told = arithmetic(panel, self.moment, self.cursor, self.place, settings)
        if told:
            self.say(told[0], short=told[1], lasting=True)
        else:
            self.say(tr("there is no number under the cursor: point at a cell, a candidate, a token"))

    def action_view(self, name: str) -> None:
        """Show a panel alone, or all of them again."""
        self.alone = "" if self.alone == name else name
        self.lay_out()

    def action_zoom(self) -> None:
        if self.alone:
            self.action_view("")
        elif self.focused is not None and self.focused.id in PANELS:
            self.action_view(self.focused.id)
        else:
            self.say(tr("tab enters a panel, z shows it alone; 1 to {last} show one each", last=len(PANELS)))

    def action_leave_panel(self) -> None:
        """Step out of the innermost thing one is in."""
        if self.draft is not None:
            self.draft = None
            self.say(tr("the settings are as they were"))
        elif self.alone:
            self.alone = ""
            self.lay_out()
        elif self.sampling_open:
            self.action_sampling()
        else:
            self.set_focus(None)
            self.cursor = self.cursor.to_cell(None).to_dimension(None)
        self.redraw()

    @on(AttentionMap.Pointed)
    def _cell_pointed(self, message: AttentionMap.Pointed) -> None:
        """The mouse says so many times a second; the next tick is soon enough."""
        self.cursor = self.cursor.to_cell(message.cell)
        self._stale = True

    @on(CandidateBars.Pointed)
    def _candidate_pointed(self, message: CandidateBars.Pointed) -> None:
        self.move_to(self.cursor.to_candidate(message.row))

    @on(HeadsMap.Chosen)
    def _head_chosen(self, message: HeadsMap.Chosen) -> None:
        self._look_at_head(message.layer, message.head)

    @on(HeadsMap.Opened)
    def _head_opened(self, message: HeadsMap.Opened) -> None:
        self._look_at_head(message.layer, message.head)
        if self.alone:
            self.action_view("attention")
        self.set_focus(self.query_one(AttentionMap))

    def _look_at_head(self, layer: int, head: int) -> None:
        if moment := self.moment:
            config = moment.trace.model.config
            self.move_to(self.cursor.to_layer(layer, config.layers).to_head(head, config.heads))

    @on(LayerTable.Chosen)
    def _layer_chosen(self, message: LayerTable.Chosen) -> None:
        if moment := self.moment:
            self.move_to(self.cursor.to_layer(message.layer, moment.stages.layers))

    @on(EmbeddingStrips.Pointed)
    def _dimension_pointed(self, message: EmbeddingStrips.Pointed) -> None:
        self.cursor = self.cursor.to_dimension(message.dimension)
        self._stale = True

    @on(TokenStream.Chosen)
    def _token_chosen(self, message: TokenStream.Chosen) -> None:
        """A written token is a moment to go back to; one of the prompt is a position to look at."""
        moment = self.moment
        if moment is None:
            return
        step = message.index - moment.prompt_length
        if step >= 0:
            self.pause()
            self.cursor = self.cursor.to_cell(None)
            self.look_at(Place(step, moment.stages.last))
        else:
            self.move_to(self.cursor.to_cell((message.index, -1)))

    @on(StageStrip.Chosen)
    def _stage_chosen(self, message: StageStrip.Chosen) -> None:
        """A layer of the strip is the end of that layer."""
        moment, place = self.moment, self.place
        if moment is None or place is None:
            return
        target = Place(place.step, strip_stage(moment.stages, message.index))
        if moment.has(target):
            self.pause()
            self.look_at(target)
        else:
            self.say(tr("the pass has not come to that stage yet"))

    @on(KeyLine.Asked)
    async def _asked(self, message: KeyLine.Asked) -> None:
        await self.run_action(message.action)

    def action_save_picture(self, panel_only: bool) -> None:
        """Take the picture now, write it elsewhere: a slow disk stops nothing."""
        panel = self._panel_in_focus() if panel_only else None
        if panel_only and panel is None:
            self.say(tr("tab enters a panel, S then saves its picture"))
            return
        if panel and not panel.size:
            self.say(tr("there is no room for that panel here"))
            return
        lines = screen_lines(self) if panel is None else panel.portrait()
        width = self.size.width if panel is None else panel.size.width
        about = (self.moment, self.place, self.cursor, (panel.id or "") if panel else "")
        self._write_picture(lines, width, picture_name(*about), caption(*about))

    def _panel_in_focus(self) -> Panel[object] | None:
        name = self.focused.id if self.focused is not None and self.focused.id in PANELS else self.alone
        return self.query_one(f"#{name}", Panel) if name else None

    @work(thread=True, group="pictures", exit_on_error=False)
    def _write_picture(self, lines: list[Strip], width: int, stem: str, told: str) -> None:
        short = ""
        try:
            folder = Path(self.options.output_dir).expanduser()
            path = save_picture(lines, width, self.look, folder, stem, caption=told)
            sentence = tr("saved {path}", path=drawable(str(path), spaces=False))
            short = tr("saved {path}", path=drawable(path.name, spaces=False))
        except CutawayError as error:
            sentence = drawable(str(error), spaces=False)
        except (OSError, RuntimeError, ValueError) as error:  # no path at all: a name too long, ~nobody
            sentence = drawable(tr("the picture cannot be saved: {reason}", reason=error), spaces=False)
        self.post_message(self.PictureWritten(sentence, short))  # a call would wait, for good if the app is leaving

    @on(PictureWritten)
    def _picture_written(self, message: PictureWritten) -> None:
        self.say(message.sentence, "here", short=message.short)

    def action_help(self) -> None:
        from .help_screen import HelpScreen

        self.app.push_screen(HelpScreen(self.look, self.keys))

    def action_quit(self) -> None:
        self._runs.cancel()
        self.app.exit()
