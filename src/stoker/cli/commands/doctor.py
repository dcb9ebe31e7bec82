"""`stoker doctor`: can a build succeed here? Cheap to import: what does the work is imported when it runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace

from stoker.cli.arguments import settings
from stoker.cli.errors import FAILURE, USAGE, CliError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker doctor`."""
    parser.add_argument(
        "-p", "--profile", metavar="NAME", help="check what this profile needs ('stoker profiles list')"
    )
    settings(parser)
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Examine and print. 0 nothing fails, 1 something does; raises CliError (2)."""
    from stoker.cli.commands.profiles import load_or_fail
    from stoker.cli.screen import in_colour
    from stoker.config.profiles.added_variables import added_by
    from stoker.doctor.check import to_json
    from stoker.doctor.examine import examine
    from stoker.doctor.recognise import recognise
    from stoker.launch.costs import with_cost
    from stoker.launch.needs import with_history, with_profile
    from stoker.show.doctor_text import render

    if args.set and args.profile is None:
        raise CliError("--set goes with a profile, as in: stoker doctor -p pytorch --set arch=9.0")
    profile = load_or_fail(args.profile, dict(args.set), faulty=USAGE) if args.profile is not None else None
    here = _here()
    env = dict(os.environ) if profile is None else added_by(profile, os.environ, here).to(os.environ)
    tree = recognise(here, env)
    need = with_history(tree if profile is None else with_profile(tree, profile, env))
    found = examine(with_cost(need, env), env)
    if profile is None and not tree.knobs and not tree.cmake:
        found = replace(found, what="a build; this folder holds none that is known, and -p NAME asks for one")
    if args.json:
        print(json.dumps(to_json(found), indent=2))
    else:
        sys.stdout.write(render(found, colour=in_colour()))
    return 0 if found.ok else FAILURE


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as err:
        raise CliError("the current folder is gone; change to the source tree first") from err
