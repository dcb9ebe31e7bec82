"""The part of the app that acts on a build: leave, stop, govern, control a replay, and the command palette.

Knows no screens except the boxes that ask before a stop, a kill or a resume.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from stoker.config.themes import Theme
from stoker.model.diagnosis import Action, words_of
from stoker.model.state import BuildState, Job
from stoker.model.text import clean
from stoker.model.update import CommandRefused, Update
from stoker.show.level_text import is_loose
from stoker.show.tui.input import actions
from stoker.show.tui.input.command_queue import CommandQueue
from stoker.show.tui.input.palette import Commands, PaletteCommand
from stoker.show.tui.pages.job_list import soloist
from stoker.show.tui.pages.lines import elide_path
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.screens.boxes import HelpBox
from stoker.show.tui.screens.message_app import MessageApp
from stoker.show.tui.screens.page_screen import PageScreen
from stoker.show.tui.screens.questions import Answer, KillBox, ResumeBox, StopBox
from stoker.show.tui.terminal.driver import driver_class, repaint
from stoker.show.tui.terminal.theming import Palette, textual_theme
from stoker.show.update_source import GoOn, UpdateSource

MESSAGE_NAME = 24
"""Cells of a job's name in a message that also names a key."""


class ControlApp(MessageApp[int], inherit_bindings=False):
    """An app over a source: what a person can do with it, and in which colours."""

    # Esc and q in quick succession arrive as Alt+q: tmux waits half a second after an Esc.
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("app"), Binding("alt+q", "detach", show=False)]
    COMMANDS: ClassVar[set[Any]] = {Commands}

    def __init__(
        self,
        source: UpdateSource,
        themes: Mapping[str, Theme],
        theme_name: str,
        keymap: Mapping[str, str],
        *,
        ascii_only: bool,
        no_colour: bool,
        go_on: GoOn | None = None,
        unresumable: str = "",
    ) -> None:
        # With NO_COLOR Textual turns colours into greys, but it omits ANSI colours, which is what we want.
        super().__init__(driver_class=driver_class(ascii_only=ascii_only), ansi_color=True if no_colour else None)
        self.source = source
        self._go_on = go_on
        self.unresumable = unresumable
        """What is said of a build that cannot be resumed from a shell, or empty."""
        self._going_on = False
        self.queue = CommandQueue(source, lambda why: self.inform(why, "error"), self.redraw)
        self.newest = Update(BuildState(), "live")
        self.keymap = dict(keymap)
        self.themes = dict(themes)
        self.theme_name = theme_name
        self._theme_turn = 0
        self._no_colour = no_colour
        self.palette = Palette(self.themes[theme_name], no_colour=no_colour)

    @property
    def scopes(self) -> Mapping[actions.Scope, str]:
        """The screens that the help lists."""
        return actions.SCOPE_TITLES

    def in_help(self, action: actions.KeyAction) -> bool:
        """Return whether the help lists an action: a replay has its own keys instead of those that govern a build."""
        return action.needs != ("control" if self.newest.link == "replay" else "replay")

    def offers(self, action: actions.KeyAction) -> bool:
        """Return whether the action is possible now."""
        if action.needs == "replay":
            return self.newest.link == "replay"
        if action.needs == "control":
            live = self.newest.link in ("live", "journal", "lost") and not self.newest.state.over
            # Before the first state the build may have ended long ago; only stopping it can be offered.
            known = self.newest.state.seq > 0 or action.id == "stop"
            return live and known and not self.source.read_only
        if action.needs == "going-on":
            return self._may_go_on and (action.id != "remedy" or self._remedy is not None)
        return True

    @property
    def _may_go_on(self) -> bool:
        """Return whether the build has failed or was stopped, and this viewer may resume it."""
        ended = self.newest.link == "ended" and self.newest.state.outcome in ("failed", "stopped")
        return ended and self._go_on is not None and not self._going_on

    @property
    def _remedy(self) -> Action | None:
        diagnosis = self.newest.state.diagnosis
        return diagnosis.action if diagnosis is not None else None

    def why_not(self, key: str, scope: actions.Scope) -> str:
        """Return why a key does nothing on a screen; empty if no action has that key, or the action is possible."""
        known = [a for a in actions.TABLE if key in self.keymap.get(a.id, a.keys).split(",")]
        here = [a for a in known if a.scope in ("app", scope)]
        if any(self.offers(a) for a in here):
            return ""
        if here:
            # If two actions share a key, explain the one for a running build, except in a replay.
            action = max(here, key=lambda a: a.needs != "replay")
            return f"{actions.key_and_name(action, self.keymap)}: {self.obstacle(action)}"
        elsewhere = next((a for a in known if a.scope in actions.SCOPE_TITLES), None)
        if elsewhere is None:
            return ""
        works = f" works on the {actions.SCOPE_TITLES[elsewhere.scope]} screen only"
        name = f"{actions.key_names(elsewhere, self.keymap)[0]} ({actions.names(elsewhere)[0]})"
        return name + (works if self.offers(elsewhere) else f": {self.obstacle(elsewhere)}")

    def obstacle(self, action: actions.KeyAction) -> str:
        """Return why an action is not possible now, in one line."""
        state, link = self.newest.state, self.newest.link
        if action.needs == "replay":
            return f"only in a replay; a build that runs is paused with {self._key('pause-softly')}"
        if link == "replay":
            return "this is a replay: the past cannot be changed"
        if self.source.read_only:
            return "this viewer is read-only"
        if action.needs == "control":
            return "the build has ended" if state.over else "nothing is known of the build yet"
        if not state.over:
            return "the build has not ended"
        if state.outcome == "done":
            return "the build is done: there is nothing to resume"
        if self._going_on:
            return "the build is being resumed already"
        if action.id == "remedy" and self._may_go_on:
            return f"no safe remedy is known for this; {self._key('go-on')} resumes the build as it was"
        return self.unresumable or "it cannot be resumed from here; from a shell: stoker run --resume"

    def _key(self, name: str) -> str:
        return actions.key_names(actions.BY_ID[name], self.keymap)[0]

    def relevant(self, action: actions.KeyAction) -> bool:
        """Return whether the action deserves a place in the footer: there is something to see or do."""
        state = self.newest.state
        paused, level = state.level.paused != "no", state.level.target is not None and not is_loose(state)
        something = {
            "failures": bool(state.failures or state.killed or state.diagnosis),
            "decisions": bool(state.decisions or state.notices),
            "verification": state.verification is not None,
            "hosts": bool(state.remote.engines),
            "level-up": level,
            "pause-softly": level or paused,
            "level-auto": level and state.level.mode == "manual",
        }
        return self.offers(action) and something.get(action.id, True)

    def label(self, action: actions.KeyAction) -> str:
        """Return the footer's present name of an action."""
        paused = self.queue.pending.paused or self.newest.state.level.paused
        return "unpause" if action.id == "pause-softly" and paused != "no" else action.footer

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys whose action is not possible now."""
        own = next((a for a in actions.of_scope("app") if a.method == action), None)
        return own is None or self.offers(own)

    def action_detach(self) -> None:
        """Leave; the build is not affected."""
        state = self.newest.state
        self.exit((1 if state.exit_code is None else state.exit_code) if state.over else None)

    def action_help(self) -> None:
        """Show all keys, of the page that a box is in front of, too."""
        pages = (screen.SCOPE for screen in reversed(self.screen_stack) if isinstance(screen, PageScreen))
        self.push_screen(HelpBox(next(pages, "app")))

    def action_repaint(self) -> None:
        """Redraw the whole screen."""
        if not repaint(self._driver):
            self.screen.refresh(layout=True)

    def action_palette(self) -> None:
        """Open Textual's command palette over the action table."""
        self.action_command_palette()

    def action_interrupt(self) -> None:
        """Ask whether to stop on Ctrl-C, or leave if nothing can be stopped."""
        if isinstance(self.screen, StopBox):
            return
        if self.offers(actions.BY_ID["stop"]):
            self.action_stop()
        else:
            self.action_detach()

    def action_stop(self) -> None:
        """Ask whether to stop the build."""
        self.push_screen(StopBox(clean(self.newest.state.name) or "build"), self._stop_answered)

    async def _stop_answered(self, answer: Answer | None) -> None:
        if answer is not None:
            await self._command("stop", force=answer == "now")

    def action_change_level(self, by: int) -> None:
        """Raise or lower the level."""
        self.queue.change_level(by, self.newest.state)

    def action_level_auto(self) -> None:
        """Make the level automatic: as many jobs as cores and memory allow."""
        self.queue.level_automatic()

    def action_pause_softly(self) -> None:
        """Start nothing new, or unpause."""
        self.queue.pause(self.newest.state, now=False)

    def action_pause_now(self) -> None:
        """Freeze everything, or unpause."""
        self.queue.pause(self.newest.state, now=True)

    def governs_job(self, action: actions.KeyAction) -> bool:
        """Return whether an action on one job is possible: stoker holds jobs, and this viewer may act."""
        return self.offers(action) and self.newest.state.level.target is not None

    def why_not_job(self) -> str:
        """Return why no action on a job is possible now, in one line."""
        action = actions.BY_ID["job.freeze"]
        return "stoker holds no jobs of this build" if self.offers(action) else self.obstacle(action)

    def job_label(self, action: actions.KeyAction, job: Job) -> str:
        """Return what an action would do to this job, in a word."""
        if action.id == "job.freeze" and not self._runs(job):
            return "start" if job.state == "on_deck" else "thaw"
        if action.id == "job.alone" and (self.wanted_alone is not None or self._is_alone(job)):
            return "let others run"
        return action.footer

    def act_on(self, job: Job, action: str) -> None:
        """Freeze, thaw or start a job; run it alone or beside others again; or ask whether to kill it."""
        if action == "job.freeze":
            self.queue.act(job.jid, "freeze" if self._runs(job) else "thaw")
        elif action == "job.alone":
            self._change_alone(job)
        elif action == "job.kill":
            self.ask_to_kill(job)

    def _runs(self, job: Job) -> bool:
        """Return whether a job runs, assuming that the last request has been carried out."""
        return {"freeze": False, "thaw": True}.get(self.queue.pending.acts.get(job.jid, ""), job.state == "running")

    def _is_alone(self, job: Job) -> bool:
        """Return whether a job runs alone, assuming that the last request has been carried out."""
        return {"alone": True, "together": False}.get(self.queue.pending.acts.get(job.jid, ""), job.alone)

    @property
    def wanted_alone(self) -> Job | None:
        """The job that a person wants to run alone, according to the last request."""
        state, acts = self.newest.state, self.queue.pending.acts
        asked = next((jid for jid, act in acts.items() if act == "alone" and jid in state.jobs), None)
        if asked is not None:
            return state.jobs[asked]
        job = soloist(state)
        return job if job is not None and job.alone_by and acts.get(job.jid) != "together" else None

    def _change_alone(self, job: Job) -> None:
        """Run a job alone; if some job is to run alone already, cancel that: only one can."""
        wanted = self.wanted_alone
        if wanted is not None and wanted.jid != job.jid:
            self.queue.act(wanted.jid, "together")
            name = elide_path(plain_name(wanted.output) or f"pid {wanted.pid}", MESSAGE_NAME)
            self.inform(f"{name}: no longer alone; {self._key('job.alone')} again runs the picked job alone")
        else:
            self.queue.act(job.jid, "together" if self._is_alone(job) else "alone")

    def ask_to_kill(self, job: Job) -> None:
        """Ask whether to kill a job, which may end while the question is open."""

        def answered(answer: Answer | None) -> None:
            if answer is not None and job.jid in self.newest.state.jobs:
                self.queue.act(job.jid, "kill")
            elif answer is not None:
                self.inform("that job has ended by itself")

        self.push_screen(KillBox(job), answered)

    def action_remedy(self) -> None:
        """Ask whether to apply the remedy and resume."""
        if self._remedy is not None:
            self._ask_to_go_on(words_of(self._remedy), remedy=True)

    def action_go_on(self) -> None:
        """Ask whether to resume the build without a remedy."""
        self._ask_to_go_on("run the same command again, from the step where it ended", remedy=False)

    def _ask_to_go_on(self, what: str, *, remedy: bool) -> None:
        async def answered(answer: Answer | None) -> None:
            if answer is not None and self._may_go_on:
                self.run_worker(self._going(remedy=remedy), group="going-on")

        self.push_screen(ResumeBox(what, self.newest.state), answered)

    async def _going(self, *, remedy: bool) -> None:
        """Resume the build; the app then exits, and its caller shows the new build."""
        if self._go_on is None:
            return
        self._going_on = True
        self.inform("resuming the build")
        try:
            await self._go_on(remedy=remedy)
        except CommandRefused as refusal:
            self._going_on = False
            self.inform(str(refusal), "error")
        else:
            self.exit(None)

    async def _command(self, verb: str, **arguments: object) -> None:
        try:
            await self.source.command(verb, **arguments)
        except CommandRefused as refusal:
            self.inform(str(refusal), "error")

    async def action_pause(self) -> None:
        """Pause the replay, or unpause it."""
        await self._command("replay_pause")

    async def action_seek(self, seconds: float) -> None:
        """Move forward or back in the replay."""
        await self._command("replay_seek", seconds=float(seconds), relative=True)

    async def action_change_speed(self, factor: float) -> None:
        """Change the replay's speed by this factor."""
        await self._command("replay_speed", factor=factor)

    def commands(self, screen: Screen[Any]) -> Iterator[PaletteCommand]:
        """Yield the palette's commands: the actions and the themes."""
        scope = screen.SCOPE if isinstance(screen, PageScreen) else "app"
        for action in actions.TABLE:
            if action.palette and action.scope in ("app", scope) and self.offers(action):
                names, keys = actions.names(action), " ".join(actions.key_names(action, self.keymap))
                name = names[1] if action.beside else names[0]  # the footer's name covers both actions
                run = partial(screen.run_action, action.calls if action.scope != "app" else f"app.{action.calls}")
                yield PaletteCommand(names, action.help, f"{name}  key {keys}", run)
        for name in self.themes:
            yield PaletteCommand(
                (f"theme {name}", name), f"Theme: {name}", "Change the colours", partial(self.use_theme, name)
            )

    def use_theme(self, name: str) -> None:
        """Switch to a theme; an unknown name changes nothing."""
        theme = self.themes.get(name)
        if theme is None:
            return
        self.theme_name = name
        self.palette = Palette(theme, no_colour=self._no_colour)
        self._theme_turn += 1
        textual = textual_theme(theme, f"stoker-{name}-{self._theme_turn}", no_colour=self._no_colour)
        self.register_theme(textual)
        old, self.theme = self.theme, textual.name
        if old.startswith("stoker-"):
            self.unregister_theme(old)
        self.tick()

    @abstractmethod
    def tick(self) -> None:
        """Draw the newest state."""

    @abstractmethod
    def redraw(self) -> None:
        """Draw the current state."""
