"""A build to look at, whatever happens to its engine: live through the socket, otherwise from the files; reconnects by
itself.

Unaware of screens. Implements `stoker.show.update_source.UpdateSource` structurally.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from stoker.config.paths import BuildPaths
from stoker.model.codec import CodecError, decode
from stoker.model.job_tree import ProcessTree
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused, Link, Update
from stoker.record.builds import final_state, is_live, known_state
from stoker.record.journal_reader import JournalReader, offset_after
from stoker.record.output_log import FileLog
from stoker.serve.connection import EngineClient, ForeignSocketError
from stoker.serve.protocol import NotLetInError, ProtocolError

__all__ = ["BuildSource", "EngineClient"]

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 2.0
"""Seconds between searches for an engine: at once after a restart, and cheap if it stays away for hours."""

RETRY_GROWTH = 1.5

STARTING_SECONDS = 1.0
"""How long to search for the first engine before the viewer learns that there is none: they start in half a second."""


class BuildSource:
    """One build. Slow readers get the newest state, never a backlog.

    `repair` is called while no engine answers: it does what can be done about that, and reports it in one line.
    """

    def __init__(self, paths: BuildPaths, read_only: bool = False, repair: Callable[[], str] = lambda: "") -> None:
        self._paths = paths
        self._repair = repair
        self._read_only = read_only
        self._log = FileLog(paths.output)
        self._state = BuildState(id=paths.id)
        self._client: EngineClient | None = None
        self._latest = _Latest()
        self._pause = FIRST_RETRY_SECONDS
        self._found_engine = False

    @property
    def read_only(self) -> bool:
        """Whether this viewer asked not to be able to act."""
        return self._read_only

    @property
    def state(self) -> BuildState:
        """The newest state that is known."""
        return self._state

    @property
    def log(self) -> FileLog:
        """The build's output."""
        return self._log

    async def updates(self) -> AsyncIterator[Update]:
        """Yield the state now and whenever it changes, until the build has ended. Raises JournalError, OSError."""
        latest = self._latest = _Latest()
        following = asyncio.create_task(self._follow())
        following.add_done_callback(lambda _: latest.close())
        try:
            while (update := await latest.take()) is not None:
                yield update
            await following
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following

    async def command(self, verb: str, **arguments: object) -> None:
        """Ask the engine; raises CommandRefused. Works even if nobody reads updates."""
        if self._read_only:
            raise CommandRefused("this viewer is read-only")
        if self._client is not None:
            await self._client.command(verb, arguments)
            return
        try:
            client = await EngineClient.connect(self._paths.socket)
        except (ForeignSocketError, NotLetInError) as err:
            raise CommandRefused(str(err)) from err
        except (OSError, ProtocolError) as err:
            raise CommandRefused("the engine does not answer; the build goes on, try again in a moment") from err
        async with client:
            await client.command(verb, arguments)

    async def processes(self, jid: int) -> ProcessTree:
        """Ask the engine; raises CommandRefused. A read-only viewer may ask, too."""
        if self._client is None:
            raise CommandRefused("no engine answers now")
        try:
            return decode(ProcessTree, await self._client.command("processes", {"jid": jid}))
        except CodecError as err:
            raise CommandRefused(f"the engine's answer cannot be read: {err}") from err

    # -- following ---------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        patient_until = asyncio.get_running_loop().time() + STARTING_SECONDS
        while not self._state.over:
            # Asked before anything is tried: an engine that ends right now has left its last events in the journal.
            if not await asyncio.to_thread(is_live, self._paths):
                self._state = await asyncio.to_thread(final_state, self._paths)
                if self._state.over:
                    break
            link: Link = "lost"
            try:
                note = await self._follow_engine()
            except NotLetInError as err:
                link, note = "journal", str(err)
            if self._state.over:
                break
            note = (await asyncio.to_thread(self._repair) if link == "lost" else "") or note
            self._state = await asyncio.to_thread(_caught_up, self._state, self._paths)
            if self._found_engine or asyncio.get_running_loop().time() >= patient_until:
                self._show(link, note)
            await asyncio.sleep(self._pause)
            self._pause = min(LAST_RETRY_SECONDS, self._pause * RETRY_GROWTH)
        self._show("ended")

    async def _follow_engine(self) -> str:
        """Follow an engine until it goes; then, or if there is none, report the problem. Raises NotLetInError."""
        try:
            client = await EngineClient.connect(
                self._paths.socket, resume=self._state.seq or None, read_only=self._read_only
            )
        except NotLetInError:
            raise
        except (ProtocolError, ForeignSocketError) as err:
            return str(err)
        except TimeoutError:
            return "the engine does not answer; looking again"
        except OSError:
            return "the engine is away" if self._state.seq else "the engine is starting"
        self._pause = FIRST_RETRY_SECONDS
        self._found_engine = True
        async with client:
            self._client = client
            try:
                await self._listen(client)
            finally:
                self._client = None
        return client.bye or "the engine is away"

    async def _listen(self, client: EngineClient) -> None:
        if client.hello.snapshot is not None:
            self._state = client.hello.snapshot
        self._show("live")
        async for record in client.records():
            self._state = reduce_all([record, *client.waiting()], self._state)
            if self._state.over:
                return
            self._show("live")

    def _show(self, link: Link, note: str = "") -> None:
        self._latest.put(Update(self._state, link, note))


class _Latest:
    """A mailbox for one update: a newer one replaces it."""

    def __init__(self) -> None:
        self._update: Update | None = None
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, update: Update) -> None:
        self._update = update
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def take(self) -> Update | None:
        """Return the newest update once there is one; None if there is none and none will come."""
        if self._update is None and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        update, self._update = self._update, None
        return update


def _caught_up(state: BuildState, paths: BuildPaths) -> BuildState:
    """Return `state` plus what the journal has beyond it."""
    if state.seq == 0:
        return known_state(paths)
    reader = JournalReader(paths.journal, offset_after(paths.journal, state.seq))
    return reduce_all(reader, state)
