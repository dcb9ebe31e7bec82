"""Resolves which build a word on the command line means. Repairs a build whose supervisor is lost."""

from __future__ import annotations

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.narration import say
from stoker.config.paths import BuildPaths
from stoker.launch.repair import repair
from stoker.model.text import clean
from stoker.record.builds import NoSuchBuildError, is_live, place_of, resolve


def find(build_id: str | None) -> BuildPaths:
    """Find the build meant by an ID, a name or the start of one; without it the live one, else the newest."""
    try:
        paths = resolve(build_id)
    except NoSuchBuildError as err:
        raise CliError(str(err), FAILURE) from err
    if done := repair(paths):
        say(done)
    if is_live(paths) and (place := clean(place_of(paths))):
        say(f"{paths.id} runs in another PID namespace; to govern it: podman exec -it {place} stoker attach {paths.id}")
    return paths
