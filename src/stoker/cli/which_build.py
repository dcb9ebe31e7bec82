"""Resolves which build a word on the command line means. Repairs a build whose supervisor is lost."""

from __future__ import annotations

from pathlib import Path

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.narration import say
from stoker.config.paths import BuildPaths
from stoker.launch.repair import repair
from stoker.model.text import clean
from stoker.record.builds import AmbiguousBuildError, NoSuchBuildError, is_live, place_of, resolve


def find(build_id: str | None, *, or_file: bool = False) -> BuildPaths:
    """Find the build meant by an ID, a name or the start of one; without it the live one, else the newest.

    `or_file` says that the word could have named a file instead, which the error then says too.
    """
    try:
        paths = resolve(build_id)
    except NoSuchBuildError as err:
        path_like = or_file and build_id is not None and "/" in build_id and not Path(build_id).exists()
        unknown = path_like and not isinstance(err, AmbiguousBuildError)
        raise CliError(f"no such file or build: {build_id}" if unknown else str(err), FAILURE) from err
    if done := repair(paths):
        say(done)
    if is_live(paths) and (place := clean(place_of(paths))):
        say(f"{paths.id} runs in another PID namespace; to govern it: podman exec -it {place} stoker attach {paths.id}")
    return paths
