"""`stoker profiles`: what there is, what a profile does once everything is filled in, and what is wrong with one."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stoker.cli.arguments import settings
from stoker.cli.errors import FAILURE, CliError
from stoker.config.config_error import ConfigError
from stoker.config.profiles.chain import NoSuchProfileError, find_profile, profile_files, profile_folders
from stoker.config.profiles.conditions import obstacle
from stoker.config.profiles.load import FaultyProfileError, ProfileError, load_profile, read_profile
from stoker.config.profiles.profile import Profile, ProfileStep
from stoker.config.profiles.schema import schema
from stoker.model.text import clean
from stoker.model.units import format_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker profiles`."""
    actions = parser.add_subparsers(dest="action", metavar="list|show|check|schema", required=True)
    listing = actions.add_parser("list", help="list all profiles, yours before the shipped ones", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="JSON, for programs")
    show = actions.add_parser(
        "show", help="print a profile with everything filled in, for this folder", allow_abbrev=False
    )
    show.add_argument("name", metavar="NAME|./FILE")
    settings(show)
    show.add_argument("--json", action="store_true", help="JSON, for programs")
    check = actions.add_parser("check", help="report every error, with its line", allow_abbrev=False)
    check.add_argument("names", nargs="*", metavar="NAME|FILE", help="what to check (default: all profiles)")
    actions.add_parser("schema", help="print the JSON schema of profiles, for editors", allow_abbrev=False)


def run(args: argparse.Namespace) -> int:
    """List, show or check; 1 if something is wrong with a profile, 2 if there is no such one."""
    if args.action == "schema":
        print(json.dumps(schema(), indent=2))
        return 0
    if args.action == "list":
        return _list(as_json=args.json)
    return _check(args.names) if args.action == "check" else _show(args)


def load_or_fail(name: str, values: Mapping[str, str], extra: Sequence[str] = (), faulty: int = FAILURE) -> Profile:
    """Load the profile, or fail in one line: with status 2 for bad words and `faulty` for a file with faults."""
    try:
        return load_profile(name, values, extra)
    except NoSuchProfileError as err:
        raise CliError(f"{err}; 'stoker profiles list' shows them") from err
    except FaultyProfileError as err:
        raise CliError(str(err), faulty) from err
    except ProfileError as err:
        raise CliError(str(err)) from err


def _list(*, as_json: bool) -> int:
    rows = [_row(name, file) for name, file in profile_files().items()]
    if as_json:
        print(json.dumps(rows))
        return 0
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['source']:<7}  {clean(row['fault'] or row['description'])}".rstrip())
    return 0


def _row(name: str, file: Path) -> dict[str, Any]:
    profile, errors = read_profile(file)
    return {
        "name": name,
        "path": str(file),
        "source": "yours" if file.parent == profile_folders()[0] else "shipped",
        "description": profile.description if profile is not None else "",
        "extends": profile.extends if profile is not None else "",
        "variables": dict(profile.variables) if profile is not None else {},
        "fault": str(errors[0]) if errors else "",
    }


def _check(names: Sequence[str]) -> int:
    status = 0
    for file in [_file(name) for name in names] or profile_files().values():
        for fault in _faults(file):
            print(f"stoker: {fault}", file=sys.stderr)
            status = FAILURE
    return status


def _file(name: str) -> Path:
    """Find a profile by its name; a file in this folder may be meant as well."""
    try:
        return Path(name) if name.endswith(".yaml") and Path(name).is_file() else find_profile(name)
    except NoSuchProfileError as err:
        raise CliError(f"{err}; 'stoker profiles list' shows them") from err


def _faults(file: Path) -> list[ConfigError]:
    return read_profile(file)[1]


def _show(args: argparse.Namespace) -> int:
    profile = load_or_fail(args.name, dict(args.set))
    if args.json:
        print(json.dumps(_as_json(profile)))
    else:
        print("\n".join(_lines(profile)))
    return 0


def _as_json(profile: Profile) -> dict[str, Any]:
    value = asdict(profile)
    del value["priors"], value["chosen"]
    for step, kept in zip(value["steps"], profile.steps, strict=True):
        step["left_out"] = obstacle(kept.when, profile, Path.cwd())
    return {**value, "path": str(profile.path), "priors": [prior.name for prior in profile.priors]}


def _lines(profile: Profile) -> Iterator[str]:
    extends = f", extends {profile.extends}" if profile.extends else ""
    yield clean(f"{profile.name}: {profile.description}".rstrip(": "))
    yield clean(f"  {profile.path}{extends}")
    for title, values in (("variables", profile.variables), ("environment", profile.env)):
        yield from _table(title, values)
    yield from _table("limits", _limits(profile))
    for n, step in enumerate(profile.steps, 1):
        yield from _step(n, step, obstacle(step.when, profile, Path.cwd()))
    if profile.verify:
        yield clean(f"verifies {', '.join(profile.verify)}")


def _limits(profile: Profile) -> dict[str, str]:
    size = f", {format_bytes(profile.cache_size)}" if profile.cache_size else ""
    limits = {
        "level": str(profile.level or ""),
        "memory": format_bytes(profile.memory) if profile.memory else "",
        "cache": profile.cache + size if profile.cache != "none" else "",
        "shared": profile.remote_cache.url,
        "fleet": _fleet(profile),
        "tmp": profile.tmp.kind if profile.tmp.kind != "none" else "",
        "container": f"{profile.container.image} ({profile.container.engine})" if profile.container.image else "",
    }
    return {name: value for name, value in limits.items() if value}


def _fleet(profile: Profile) -> str:
    """Return who compiles elsewhere; empty for nobody."""
    if profile.distcc.words:
        return f"distcc: {' '.join(profile.distcc.words)}"
    if profile.icecream.scheduler:
        return f"icecream: {profile.icecream.scheduler}"
    return f"sccache: {profile.dist.scheduler}" if profile.dist.scheduler else ""


def _table(title: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield title
        width = max(map(len, values))
        yield from (clean(f"  {name:<{width}}  {value or '(empty)'}") for name, value in values.items())


def _step(n: int, step: ProfileStep, left_out: str) -> Iterator[str]:
    limits = f", at most {step.level} at once" if step.level else ""
    why = f", left out here: {left_out}" if left_out else ""
    yield clean(f"step {n}: {step.name}{limits}{why}")
    where = f"cd {shlex.quote(step.cwd)} && " if step.cwd != "." else ""
    environment = "".join(f"{name}={shlex.quote(value)} " for name, value in step.env.items())
    yield clean(f"  {where}{environment}{shlex.join(step.words)}")
