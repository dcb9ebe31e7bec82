"""The table of all actions: keys, footer, help and command palette are generated from it.

Knows no widgets; screens look up their own actions by scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from textual.binding import Binding, BindingType

Scope = Literal[
    "app", "dashboard", "output", "timeline", "failures", "decisions", "verification", "hosts", "end",
    "history", "summary", "compare",
]  # fmt: skip
Needs = Literal["", "control", "replay", "going-on"]
"""What an action requires. control: a live build that this viewer may act on; replay: a recorded build being played;
going-on: a build that failed or was stopped, and can be resumed."""


@dataclass(frozen=True, slots=True)
class KeyAction:
    """One action. `footer` is its short name in the footer, or empty.

    `beside` is the action whose key the footer shows together with this one's. `call` is the Textual action, with its
    arguments; by default it is the id with `_` for dots and dashes.
    """

    id: str
    scope: Scope
    keys: str
    help: str
    footer: str = ""
    needs: Needs = ""
    palette: bool = True
    beside: str = ""
    call: str = ""

    @property
    def calls(self) -> str:
        """The Textual action, in the form that Textual parses."""
        return self.call or self.id.replace(".", "_").replace("-", "_")

    @property
    def method(self) -> str:
        """The name of the method: `action_<method>`."""
        return self.calls.partition("(")[0]


TABLE: tuple[KeyAction, ...] = (
    KeyAction("detach", "app", "q", "Leave; a build that runs continues", "leave"),
    KeyAction("remedy", "app", "r", "Apply the safe remedy and resume (asks first)", "remedy", needs="going-on"),
    KeyAction(
        "go-on",
        "app",
        "c",
        "Resume the build as it was (asks first)",
        "resume",
        needs="going-on",
    ),
    KeyAction(
        "level-up",
        "app",
        "plus",
        "Raise the level: how many jobs may run at once",
        "level",
        needs="control",
        beside="level-down",
        call="change_level(1)",
    ),
    KeyAction("level-down", "app", "minus", "Lower the level by one job", needs="control", call="change_level(-1)"),
    KeyAction(
        "level-auto", "app", "a", "Automatic level: as many jobs as cores and memory allow", "auto", needs="control"
    ),
    KeyAction("pause-softly", "app", "p", "Start nothing new; again: unpause", "pause", needs="control"),
    KeyAction("pause-now", "app", "P", "Freeze everything; again: unpause", needs="control"),
    KeyAction("failures", "app", "f", "What failed, and why", "failures", call="open('failures')"),
    KeyAction("output", "app", "o", "The build's output", "output", call="open('output')"),
    KeyAction("timeline", "app", "t", "Memory, jobs and CPU over time", "timeline", call="open('timeline')"),
    KeyAction(
        "decisions", "app", "d", "All decisions and notices, with their reasons", "decisions", call="open('decisions')"
    ),
    KeyAction(
        "verification",
        "app",
        "v",
        "Which GPUs the binaries run on",
        "verified",
        call="open('verification')",
    ),
    KeyAction("hosts", "app", "m", "Other machines that compile, and their results", "hosts", call="open('hosts')"),
    KeyAction("stop", "app", "s", "Stop the build (asks first)", "stop", needs="control"),
    KeyAction("interrupt", "app", "ctrl+c", "Ask whether to stop; leave where nothing can be stopped", palette=False),
    KeyAction("pause", "app", "space", "Pause the replay; again: unpause", "pause", needs="replay"),
    KeyAction("seek-back", "app", "left", "Replay: 10 seconds back", needs="replay", call="seek(-10)"),
    KeyAction("seek-forward", "app", "right", "Replay: 10 seconds forward", needs="replay", call="seek(10)"),
    KeyAction(
        "slower",
        "app",
        "minus",
        "Replay at half the speed",
        "speed",
        needs="replay",
        beside="faster",
        call="change_speed(0.5)",
    ),
    KeyAction("faster", "app", "plus", "Replay at twice the speed", needs="replay", call="change_speed(2.0)"),
    KeyAction("suspend-process", "app", "ctrl+z", "Back to the shell for a while (fg returns)", palette=False),
    KeyAction("repaint", "app", "ctrl+l", "Draw the whole screen again", palette=False),
    KeyAction("help", "app", "question_mark", "All keys", "help"),
    KeyAction("palette", "app", "ctrl+p,colon", "Find a command by its name", palette=False),
    KeyAction("back", "app", "escape", "Back to the previous screen", "back", palette=False),
    KeyAction("job.down", "dashboard", "down,j", "Pick the next job", palette=False, call="move(1)"),
    KeyAction("job.up", "dashboard", "up,k", "Pick the previous job", palette=False, call="move(-1)"),
    KeyAction("job.page-down", "dashboard", "pagedown", "Ten jobs down", palette=False, call="move(10)"),
    KeyAction("job.page-up", "dashboard", "pageup", "Ten jobs up", palette=False, call="move(-10)"),
    KeyAction("job.first", "dashboard", "home,g", "The first job of the table", palette=False),
    KeyAction("job.last", "dashboard", "end,G", "The last job of the table", palette=False),
    KeyAction("job.details", "dashboard", "enter", "All details of the picked job", "job", palette=False),
    KeyAction("job.filter", "dashboard", "slash", "Filter jobs by words; Esc shows all", "filter", call="filter"),
    KeyAction(
        "job.sort", "dashboard", "greater_than_sign", "Sort by time, memory, expected, name", "sort", call="sort(1)"
    ),
    KeyAction("job.sort-back", "dashboard", "less_than_sign", "Previous sort order", palette=False, call="sort(-1)"),
    KeyAction("job.freeze", "dashboard", "F", "Freeze, thaw or start the picked job", "freeze", needs="control"),
    KeyAction(
        "job.alone",
        "dashboard",
        "O",
        "Run only the picked job, others wait; again: let them run",
        "alone",
        needs="control",
    ),
    KeyAction("job.kill", "dashboard", "X", "Kill the picked job (asks first)", "kill", needs="control"),
    KeyAction("level.type", "dashboard", "equals_sign", "Type a level (any digit begins it)", needs="control"),
    KeyAction("log.down", "output", "down,j", "One line down", palette=False, call="move(1)"),
    KeyAction("log.up", "output", "up,k", "One line up", palette=False, call="move(-1)"),
    KeyAction("log.page-down", "output", "pagedown", "One page down", palette=False, call="move_page(1)"),
    KeyAction("log.page-up", "output", "pageup,b", "One page up", palette=False, call="move_page(-1)"),
    KeyAction("log.first", "output", "home,g", "Go to the beginning", palette=False),
    KeyAction("log.last", "output", "end,G", "Go to the end and follow new output", "follow", palette=False),
    KeyAction("log.left", "output", "left", "Scroll to the left", palette=False, call="shift(-20)"),
    KeyAction("log.right", "output", "right", "Scroll to the right", palette=False, call="shift(20)"),
    KeyAction("log.wrap", "output", "w", "Wrap or cut long lines", "wrap"),
    KeyAction("log.search", "output", "slash", "Search (capitals matter only if you type any)", "search"),
    KeyAction("log.next", "output", "n", "Next match", "next match", palette=False, beside="log.previous"),
    KeyAction("log.previous", "output", "N", "Previous match", palette=False),
    KeyAction("log.next-error", "output", "e", "The next line that looks like an error", "next error"),
    KeyAction("log.errors", "output", "E", "Only the lines that look like errors", "errors"),
    KeyAction(
        "moment.left",
        "timeline",
        "left",
        "Move the cursor back in time",
        "moment",
        beside="moment.right",
        call="move_cursor(-1)",
    ),
    KeyAction(
        "moment.right", "timeline", "right", "Move the cursor forward in time", palette=False, call="move_cursor(1)"
    ),
    KeyAction("moment.far-left", "timeline", "pageup", "Ten columns back", palette=False, call="move_cursor(-10)"),
    KeyAction("moment.far-right", "timeline", "pagedown", "Ten columns forward", palette=False, call="move_cursor(10)"),
    KeyAction("moment.first", "timeline", "home,g", "Go to the start", palette=False, call="cursor_to(0)"),
    KeyAction("moment.last", "timeline", "end,G", "Go to the end", palette=False, call="cursor_to(-1)"),
    KeyAction("moment.closer", "timeline", "z", "Zoom in; Esc shows the whole build", "zoom", call="zoom(1)"),
    KeyAction(
        "moment.next",
        "timeline",
        "n",
        "The next decision",
        "decision",
        beside="moment.previous",
        call="next_decision(1)",
    ),
    KeyAction("moment.show", "timeline", "enter", "What was decided at the cursor", "decided here", palette=False),
    KeyAction("moment.previous", "timeline", "N", "The previous decision", palette=False, call="next_decision(-1)"),
    KeyAction("moment.filter", "timeline", "slash", "Filter decisions and jobs by words", "filter", call="filter"),
    KeyAction("moment.wider", "timeline", "Z", "Zoom out", palette=False, call="zoom(-1)"),
    KeyAction("failure.next", "failures", "down,j", "The next failure", palette=False, call="move(1)"),
    KeyAction("failure.previous", "failures", "up,k", "The previous failure", palette=False, call="move(-1)"),
    KeyAction("failure.first", "failures", "home,g", "The first of the list", palette=False, call="move_to(0)"),
    KeyAction("failure.last", "failures", "end,G", "The last of the list", palette=False, call="move_to(-1)"),
    KeyAction("failure.show", "failures", "enter", "Show the failure in the output", "in the output", palette=False),
    KeyAction(
        "failure.more", "failures", "pagedown", "Scroll down in the failure's details", "more", call="scroll_details(1)"
    ),
    KeyAction(
        "failure.less", "failures", "pageup", "Back to the top of the details", palette=False, call="scroll_details(-1)"
    ),
    KeyAction("failure.filter", "failures", "slash", "Filter failures by words", "filter", call="filter"),
    KeyAction("entry.down", "decisions", "down,j", "One line down", palette=False, call="move(1)"),
    KeyAction("entry.up", "decisions", "up,k", "One line up", palette=False, call="move(-1)"),
    KeyAction("entry.page-down", "decisions", "pagedown", "One page down", palette=False, call="move(10)"),
    KeyAction("entry.page-up", "decisions", "pageup", "One page up", palette=False, call="move(-10)"),
    KeyAction("entry.first", "decisions", "home,g", "The oldest entry", palette=False, call="move_to(0)"),
    KeyAction("entry.last", "decisions", "end,G", "The newest entry", palette=False, call="move_to(-1)"),
    KeyAction(
        "entry.kind",
        "decisions",
        "greater_than_sign",
        "Only entries of one kind, the next of those named at the top; Esc shows all",
        "kind",
        call="kind(1)",
    ),
    KeyAction("entry.kind-back", "decisions", "less_than_sign", "The previous kind", palette=False, call="kind(-1)"),
    KeyAction("entry.filter", "decisions", "slash", "Filter entries by words", "filter", call="filter"),
    KeyAction("host.down", "hosts", "down,j", "One host down", palette=False, call="move(1)"),
    KeyAction("host.up", "hosts", "up,k", "One host up", palette=False, call="move(-1)"),
    KeyAction("host.page-down", "hosts", "pagedown", "Ten hosts down", palette=False, call="move(10)"),
    KeyAction("host.page-up", "hosts", "pageup", "Ten hosts up", palette=False, call="move(-10)"),
    KeyAction("host.filter", "hosts", "slash", "Filter hosts by words", "filter", call="filter"),
    KeyAction("verdict.next", "verification", "down,j", "The next row", palette=False, call="move(1)"),
    KeyAction("verdict.previous", "verification", "up,k", "The previous row", palette=False, call="move(-1)"),
    KeyAction("verdict.filter", "verification", "slash", "Filter rows by words", "filter", call="filter"),
    KeyAction("verdict.page-down", "verification", "pagedown", "Ten rows down", palette=False, call="move(10)"),
    KeyAction("verdict.page-up", "verification", "pageup", "Ten rows up", palette=False, call="move(-10)"),
    KeyAction("build.brief", "history", "enter", "Summary of the picked build", "summary"),
    KeyAction("build.mark", "history", "space", "Mark it for a comparison: A, then B, then unmark", "mark"),
    KeyAction("build.compare", "history", "c", "Compare the builds marked A with those marked B", "compare"),
    KeyAction("build.open", "history", "o", "Open its screens: output, timeline, decisions", "open"),
    KeyAction("build.everywhere", "history", "a", "Builds of all folders, or of this one", "all folders"),
    KeyAction("build.filter", "history", "slash", "Filter builds by words", "filter", call="filter"),
    KeyAction(
        "build.sort", "history", "greater_than_sign", "Sort by date, time, trend, memory", "sort", call="sort(1)"
    ),
    KeyAction("build.sort-back", "history", "less_than_sign", "Previous sort order", call="sort(-1)"),
    KeyAction("build.down", "history", "down,j", "The next build", call="move(1)"),
    KeyAction("build.up", "history", "up,k", "The previous build", call="move(-1)"),
    KeyAction("build.page-down", "history", "pagedown", "Ten builds down", call="move(10)"),
    KeyAction("build.page-up", "history", "pageup", "Ten builds up", call="move(-10)"),
    KeyAction("build.first", "history", "home,g", "The first of the list", call="move_to(0)"),
    KeyAction("build.last", "history", "end,G", "The last of the list", call="move_to(-1)"),
    KeyAction("brief.open", "summary", "o", "Open its screens: output, timeline, decisions", "open"),
    KeyAction("brief.down", "summary", "down,j", "One line down", call="move(1)"),
    KeyAction("brief.up", "summary", "up,k", "One line up", call="move(-1)"),
    KeyAction("brief.page-down", "summary", "pagedown", "One page down", call="move_page(1)"),
    KeyAction("brief.page-up", "summary", "pageup,b", "One page up", call="move_page(-1)"),
    KeyAction("pair.filter", "compare", "slash", "Filter jobs by words, such as worse", "filter", call="filter"),
    KeyAction("pair.sort", "compare", "greater_than_sign", "Sort by change, CPU, memory, name", "sort", call="sort(1)"),
    KeyAction("pair.sort-back", "compare", "less_than_sign", "Previous sort order", call="sort(-1)"),
    KeyAction("pair.down", "compare", "down,j", "The next job", call="move(1)"),
    KeyAction("pair.up", "compare", "up,k", "The previous job", call="move(-1)"),
    KeyAction("pair.page-down", "compare", "pagedown", "Ten jobs down", call="move(10)"),
    KeyAction("pair.page-up", "compare", "pageup", "Ten jobs up", call="move(-10)"),
    KeyAction("pair.first", "compare", "home,g", "The first of the list", call="move_to(0)"),
    KeyAction("pair.last", "compare", "end,G", "The last of the list", call="move_to(-1)"),
)

BY_ID: Mapping[str, KeyAction] = {action.id: action for action in TABLE}

OTHER_NAMES: Mapping[str, str] = {
    "detach": "quit exit",
    "remedy": "retry fix",
    "go-on": "continue",
    "level-up": "jobs more",
    "level-down": "jobs less",
    "level-auto": "jobs automatic",
    "pause-softly": "unpause continue",
    "pause-now": "freeze unpause continue",
    "output": "log",
    "timeline": "memory cpu",
    "failures": "diagnose errors causes",
    "decisions": "events notices",
    "verification": "verify",
    "hosts": "machines remote distcc",
    "stop": "kill end",
    "help": "keys",
    "level.type": "jobs number",
}
"""Other names by which a person may search for an action: those of the command line, and of other programs."""

SCOPE_TITLES: Mapping[Scope, str] = {
    "app": "everywhere",
    "dashboard": "dashboard",
    "output": "output",
    "timeline": "timeline",
    "failures": "failures",
    "decisions": "decisions",
    "verification": "verification",
    "hosts": "hosts",
}

BROWSE_TITLES: Mapping[Scope, str] = {
    "history": "list of builds",
    "summary": "summary of a build",
    "compare": "comparison",
}
"""The screens over recorded builds; of the app's actions, only BROWSE_SHARED work on them."""

BROWSE_SHARED = ("detach", "interrupt", "suspend-process", "repaint", "help", "back")

OVER_BOXES = ("interrupt", "repaint")
"""Actions that also work while a box is open."""

_KEY_NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":", "plus": "+", "minus": "-", "equals_sign": "=",
    "greater_than_sign": ">", "less_than_sign": "<",
    "escape": "esc",
    "pagedown": "pgdn", "pageup": "pgup", "ctrl+c": "^c", "ctrl+l": "^l", "ctrl+p": "^p", "ctrl+z": "^z",
}  # fmt: skip


def bindings(scope: Scope) -> list[BindingType]:
    """Return the bindings of one screen, or of the app."""
    return bindings_of(*(a.id for a in TABLE if a.scope == scope))


def bindings_of(*names: str) -> list[BindingType]:
    """Return the bindings of these actions."""
    return [
        Binding(a.keys, a.calls, a.help, id=a.id, show=False, priority=a.id in OVER_BOXES)
        for a in (BY_ID[name] for name in names)
    ]


def of_scope(scope: Scope) -> list[KeyAction]:
    """Return the actions of one screen, or of the app."""
    return [a for a in TABLE if a.scope == scope]


def _everywhere(scope: Scope) -> list[KeyAction]:
    """Return the actions that work on every screen of the app that a scope belongs to."""
    return [BY_ID[name] for name in BROWSE_SHARED] if scope in BROWSE_TITLES else of_scope("app")


def key_names(action: KeyAction, keymap: Mapping[str, str]) -> list[str]:
    """Return the keys of an action as a person reads them, after the user's own changes."""
    return [_KEY_NAMES.get(key.strip(), key.strip()) for key in keymap.get(action.id, action.keys).split(",")]


def key_and_name(action: KeyAction, keymap: Mapping[str, str]) -> str:
    """Return the key of an action, with its name in the footer if it has one."""
    key = key_names(action, keymap)[0]
    return f"{key} ({action.footer})" if action.footer else key


def names(action: KeyAction) -> tuple[str, ...]:
    """Return the names by which a person may search for an action: first the footer's, then its own and others."""
    own = action.id.replace("-", " ").replace(".", " ")
    known = (action.footer, own, *own.split(), *OTHER_NAMES.get(action.id, "").split())
    return tuple(dict.fromkeys(name for name in known if name))


def keymap_errors(keymap: Mapping[str, str]) -> list[str]:
    """Return the errors in a user's own keys, one line each: unknown actions, and keys used twice."""
    errors = []
    for name in keymap:
        if name not in BY_ID:
            near = get_close_matches(name, BY_ID, 1)
            errors.append(f"keys: there is no action {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    for scope in (*SCOPE_TITLES, *BROWSE_TITLES):
        owners: dict[str, str] = {}
        for action in [*_everywhere(scope), *(of_scope(scope) if scope != "app" else ())]:
            for key in keymap.get(action.id, action.keys).split(","):
                other = owners.setdefault(key.strip(), action.id)
                changed = action.id in keymap or other in keymap
                never_both = {action.needs, BY_ID[other].needs} == {"control", "replay"}
                if other != action.id and changed and not never_both:
                    errors.append(f"keys: {key.strip()!r} is given to both {other!r} and {action.id!r}")
    return list(dict.fromkeys(errors))
