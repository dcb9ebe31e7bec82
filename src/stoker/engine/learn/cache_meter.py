"""Measures the compiler cache: queries its statistics, cheaply, and reports what it did for this build.

ccache appends what each call did to a log: checking that costs one stat(2). sccache, and a ccache without such a log,
are queried now and then. Unaware of jobs, except for what a hit saved.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.engine.learn.cache_watch import CacheWatch
from stoker.engine.learn.expectations import Expectations
from stoker.model import events as ev
from stoker.model.cache_use import CacheTool, CacheUse
from stoker.model.state import BuildState
from stoker.sense.caches.cache_figures import Figures, StatsLog, ccache_figures, ccache_size, sccache_figures
from stoker.sense.caches.cache_server import ASK, answers, ask, is_called, start
from stoker.sense.caches.endpoints import CachePlace, endpoints
from stoker.sense.caches.sccache_config import SccacheConfigError, knows_scheduler, with_scheduler

ASK_EVERY, ASK_SHARE = 2.0, 0.01
"""Minimum seconds between two queries, and the share of time that queries may take: a query of sccache is a process of
5 ms; one to a server with a remote cache may take long."""

SIZE_EVERY = 30.0
"""Seconds between two queries for ccache's size, which is not in its log."""

READERS = {"ccache": ccache_figures, "sccache": sccache_figures}
NOT_FOR_A_SERVER = ("MAKEFLAGS", "MFLAGS", "STOKER_READY_FD")
"""What a server must not inherit, because it outlives the build: this build's jobservers."""


NOTHING = (0, 0, 0, 0)
"""Hits, misses, uncacheable calls and errors of a cache that has just started."""


class _Asked:
    """One cache's figures, minus what it had counted before this build."""

    def __init__(self, base: tuple[int, ...]) -> None:
        self._base = base if len(base) == len(NOTHING) else NOTHING
        self._last = NOTHING
        self.figures = Figures()
        self.late = False
        """Found after the build had started: everything counted before the first query belongs to others."""

    @property
    def base(self) -> tuple[int, ...]:
        """The part of the cache's counts that this build did not cause."""
        return self._base

    def begin(self, figures: Figures) -> None:
        """Everything counted by now was before this build."""
        self._base = self._last = figures.counts

    def take(self, figures: Figures) -> None:
        """Return the figures now. A restarted server, or a `--zero-stats`, starts again at zero."""
        if self.late:
            self.begin(figures)
            self.late = False
        if any(now < before for now, before in zip(figures.counts, self._last, strict=True)):
            self._base = tuple(base - last for base, last in zip(self._base, self._last, strict=True))
        self._last = figures.counts
        mine = (max(0, now - base) for now, base in zip(figures.counts, self._base, strict=True))
        self.figures = Figures(*mine)._replace(size=figures.size, size_limit=figures.size_limit)


class CacheMeter:
    """One build's cache. Call `begin` before the build runs, `look` every tick, `finish` at the end."""

    def __init__(self, spec: BuildSpec, paths: BuildPaths, state: BuildState, known: Expectations) -> None:
        self._env = {name: value for name, value in os.environ.items() if name not in NOT_FOR_A_SERVER}
        self._cwd = spec.cwd
        self._dist = spec.dist
        self._start_server = spec.cache == "sccache" or is_called(self._env, _folders(spec))
        own = spec.cache_log
        self._log = None if own is None else StatsLog(Path(own or paths.cache_log), spec.cache_log_start)
        self._own_log = own == ""
        self._known = known
        self._watch: CacheWatch | None = None
        self._shared = state.shared_caches
        self._set_up = spec.cache
        self._announced = state.cache
        self._before = state.cache
        self._bases = paths.cache_bases
        self._written: dict[CacheTool, tuple[int, ...]] = {}
        self._asked: dict[CacheTool, _Asked] = {}
        self._asking: asyncio.Task[None] | None = None
        self._ask_at = 0.0
        self._endpoints: tuple[CachePlace, ...] = ()
        self._size_at = 0.0
        self._size: tuple[int | None, int | None] = (None, None)

    # -- the cache ---------------------------------------------------------------------------------------------

    async def begin(self) -> list[ev.Event]:
        """Start the server that the build will call, and note what was counted before this build."""
        notes: list[ev.Event] = []
        program = self._program("sccache") if self._start_server else None
        # Otherwise the first clients would start it, all at once, and none of them could be held meanwhile.
        if program is not None:
            notes += await self._start(program)
        known = self._read_bases()
        for tool in self._to_ask():
            asked = self._asked[tool] = _Asked(known.get(tool, ()))
            if tool not in known and (figures := await self._figures(tool)) is not None:
                asked.begin(figures)
        self._write_bases()
        await self._watch_shared()
        return notes

    async def _watch_shared(self) -> None:
        """Watch the shared caches among those that this build calls."""
        said, program = "", self._program("ccache")
        if program is not None and not self._env.get("CCACHE_REMOTE_STORAGE"):
            said = await ask((program, "--get-config", "remote_storage"), self._env, self._cwd) or ""
        self._endpoints = endpoints(self._env, said)
        self._watch = CacheWatch() if self._endpoints else None
        self._watch_used()

    def _watch_used(self) -> None:
        if self._watch is None:
            return
        used = {self._set_up, *self._known.launchers, *(["sccache"] if self._start_server else [])}
        used |= {"ccache"} if self._log_counts() else set()
        self._watch.start([e for e in self._endpoints if e.tool in used], self._shared.values())

    async def _start(self, program: str) -> list[ev.Event]:
        """Start a server if none runs; a running one keeps the scheduler that it was started with, or none."""
        if await answers(self._env):
            if self._dist is None or knows_scheduler(await ask((program, "--dist-status"), self._env, self._cwd)):
                return []
            text = "sccache's server runs already and knows no scheduler: all is compiled here; sccache --stop-server"
            return [ev.Noticed("warning", text)]
        try:
            config = self._with_scheduler()
        except SccacheConfigError as err:
            return [ev.Noticed("warning", str(err))]
        if await start(program, self._env, config):
            return []
        return [ev.Noticed("warning", "sccache's server does not start; see: sccache --start-server")]

    def _with_scheduler(self) -> str:
        if self._dist is None:
            return ""
        return with_scheduler(self._env, self._dist.url, self._env.get(self._dist.token_from, ""))

    def _read_bases(self) -> dict[str, tuple[int, ...]]:
        """Return the counts before the build that an earlier engine wrote down."""
        try:
            figures = json.loads(self._bases.read_bytes())
            return {str(tool): tuple(int(count) for count in counts) for tool, counts in figures.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write_bases(self) -> None:
        """Write them down for a successor engine."""
        bases = {tool: asked.base for tool, asked in self._asked.items()}
        if bases and bases != self._written:
            new = self._bases.with_suffix(".new")
            with contextlib.suppress(OSError):
                new.write_text(json.dumps(bases))
                new.replace(self._bases)
                self._written = bases

    def _to_ask(self) -> list[CacheTool]:
        """Return the caches that must be queried for their counts."""
        tools: list[CacheTool] = ["sccache"] if self._log is not None else ["sccache", "ccache"]
        return [tool for tool in tools if self._program(tool) is not None]

    def _program(self, tool: str) -> str | None:
        """Return the cache's program: the one that the jobs name, otherwise the one on PATH."""
        return shutil.which(self._known.launchers.get(tool, tool), path=self._env.get("PATH"))

    async def _figures(self, tool: CacheTool) -> Figures | None:
        program = self._program(tool)
        if program is None or (tool == "sccache" and not await answers(self._env)):
            return None
        text = await ask((program, *ASK[tool]), self._env, self._cwd)
        figures = READERS[tool](text) if text is not None else None
        if tool == "ccache" and figures is not None and figures.size_limit is None:  # older ones lack it
            limit = await ask((program, "--get-config", "max_size"), self._env, self._cwd)
            figures = figures._replace(size_limit=ccache_size(limit or ""))
        return figures

    # -- looking -----------------------------------------------------------------------------------------------

    def look(self) -> list[ev.Event]:
        """Return what is new; never blocks: queries run in the background."""
        if self._log is not None:
            self._log.read()
        self._watch_used()
        if self._asking is None and self._due():
            self._asking = asyncio.create_task(self._ask())
        elif self._asking is not None and self._asking.done():
            self._asking = None
        return [*self._news(), *(self._watch.look() if self._watch is not None else ())]

    async def finish(self) -> list[ev.Event]:
        """The last figures."""
        if self._watch is not None:
            self._watch.close()
        if self._asking is not None:
            await asyncio.wait([self._asking])
        if self._log is not None:
            while self._log.read():
                pass
        self._size_at = 0.0
        await self._ask()
        if self._use() is not None:
            self._known.place_unseen()
        return self._news()

    def _due(self) -> bool:
        return time.monotonic() >= self._ask_at and (bool(self._used()) or self._log_counts())

    def _used(self) -> list[CacheTool]:
        """Return the caches that jobs of this build call and that must be queried."""
        for tool in ("sccache", "ccache"):
            if tool in self._known.launchers and tool not in self._asked and tool in self._to_ask():
                asked = self._asked[tool] = _Asked(())
                asked.late = True
        return [tool for tool in self._asked if tool in self._known.launchers]

    def _log_counts(self) -> bool:
        return self._log is not None and any(self._log.figures.counts)

    async def _ask(self) -> None:
        """Query those that are in use; how often depends on how long a query takes."""
        began = time.monotonic()
        for tool in self._used():
            if (figures := await self._figures(tool)) is not None:
                self._asked[tool].take(figures)
        self._write_bases()
        if self._log_counts() and began >= self._size_at and (figures := await self._figures("ccache")) is not None:
            self._size, self._size_at = (figures.size, figures.size_limit), began + SIZE_EVERY
        took = time.monotonic() - began
        self._ask_at = time.monotonic() + max(ASK_EVERY, took / ASK_SHARE)

    # -- telling -----------------------------------------------------------------------------------------------

    def _news(self) -> list[ev.Event]:
        use = self._use()
        if use is None or use == self._announced:
            return []
        self._announced = use
        self._known.caching = True
        return [ev.CacheUsed(use)]

    def _use(self) -> CacheUse | None:
        """Return the cache that did most for this build; None if none did anything."""
        uses = [CacheUse(tool, *a.figures, exact=not any(a.base)) for tool, a in self._asked.items()]
        if self._log is not None:
            counts = self._log.figures.counts
            uses.append(CacheUse("ccache", *counts, *self._size, exact=self._own_log))
        used = [use for use in uses if use.calls or use.uncacheable or use.errors]
        if not used:
            return None
        return self._with_saved(max(used, key=lambda use: use.calls))

    def _with_saved(self, use: CacheUse) -> CacheUse:
        """Return what the hits saved; hits before this engine started count as the earlier engine announced them."""
        before = self._before if self._before is not None and self._before.tool == use.tool else CacheUse(use.tool)
        spared = self._known.saved.by(use.hits - before.hits)
        if spared is None:
            return replace(use, saved_seconds=before.saved_seconds, saved_jobs=before.saved_jobs)
        seconds = round((before.saved_seconds or 0.0) + spared.seconds, 1)
        return replace(use, saved_seconds=seconds, saved_jobs=before.saved_jobs + spared.jobs)


def _folders(spec: BuildSpec) -> list[str]:
    """Return the folders in which the build's commands run, and those that their `-C` names."""
    found = []
    for step in spec.steps:
        found.append(step.cwd)
        found += [os.path.join(step.cwd, folder) for option, folder in pairwise(step.command) if option == "-C"]
    return found
