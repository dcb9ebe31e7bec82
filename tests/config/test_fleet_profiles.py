"""What a profile says of other machines and shared caches: what is refused, and which variables come of it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.config.paths import data_dir
from stoker.config.profiles.added_variables import added_by
from stoker.config.profiles.load import read_profile
from stoker.config.profiles.profile import Profile

STEPS = "steps:\n  build:\n    command: ninja\n"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Surroundings in which these programs alone are on PATH, and nobody has set anything."""
    (tmp_path / "bin").mkdir()
    for name in ("ccache", "sccache", "distcc", "icecc"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin"}


def read(tmp_path: Path, text: str) -> tuple[Profile | None, list[str]]:
    path = tmp_path / "mine.yaml"
    path.write_text(text + STEPS)
    profile, errors = read_profile(path)
    return profile, [f"{error.line}: {error.message}" for error in errors]


def profile_of(tmp_path: Path, text: str) -> Profile:
    profile, errors = read(tmp_path, text)
    assert profile is not None
    assert errors == []
    return profile


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cache: ccache\ndist:\n  scheduler: http://a:1\n", "write cache: sccache"),
        ("cache: sccache\ndistcc:\n  hosts: [a/2]\n", "write cache: ccache, or dist: for sccache"),
        ("distcc:\n  hosts: [a/2]\nicecream:\n  scheduler: a\n", "exclude each other"),
        ("distcc:\n  hosts: ['a b;c']\n", "'b;c' is not a distcc host"),
        ("distcc:\n  hosts: [--rsh=evil]\n", "is not a distcc host"),
        ("distcc:\n  hosts: ['a/2,cpp,lzo']\n", "leave ,cpp out"),
        ("distcc: {}\n", "'distcc' needs 'hosts'"),
        ("distcc:\n  hosts: [a]\n  host: a\n", "unknown key 'host'; did you mean 'hosts'?"),
        ("distcc:\n  hosts: [a]\n  preprocess: many\n", "whole number from 1"),
        ("icecream:\n  scheduler: -n\n", "is a host like build1"),
        ("cache: sccache\ndist:\n  scheduler: build1\n", "an address like http://10.0.0.5:10600"),
        ("cache: sccache\ndist:\n  scheduler: http://me:pw@a:1\n", "without a password"),
        ("remote_cache:\n  url: redis://a:1\n", "write cache: sccache, or ccache"),
        ("cache: ccache\nremote_cache:\n  url: s3://b\n", "ccache cannot use a cache at s3://; it can at redis, http"),
        ("cache: sccache\nremote_cache:\n  url: build1\n", "sccache cannot use a cache at 'build1'"),
        ("cache: sccache\nremote_cache:\n  url: redis://a:99999\n", "sccache cannot use a cache"),
        ("cache: sccache\nremote_cache:\n  url: redis://a\n  read_only: yes\n", "is for ccache alone"),
        ("distcc:\n  hosts: [a]\ncontainer:\n  image: x\n", "write it into container.env"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_remedy(tmp_path: Path, text: str, fault: str) -> None:
    _, errors = read(tmp_path, text)
    assert len(errors) == 1
    assert fault in errors[0]


@pytest.mark.parametrize(
    "text",
    [
        "cache: sccache\nremote_cache:\n  url: redis://me:hunter2@a:1\n",
        "cache: sccache\nremote_cache:\n  url: redis://a\n  password_from: hunter2!\n",
        "cache: sccache\ndist:\n  scheduler: http://a\n  token_from: hunter2-\n",
    ],
)
def test_a_secret_in_a_profile_is_refused_and_not_printed(tmp_path: Path, text: str) -> None:
    _, errors = read(tmp_path, text)
    assert len(errors) == 1
    assert "hunter2" not in errors[0]


def test_a_value_of_a_variable_may_hold_several_hosts_or_none(tmp_path: Path, environ: dict[str, str]) -> None:
    text = "variables: {hosts: 'a/4 b/8,lzo'}\ndistcc:\n  hosts: ['${hosts}', localhost/2]\n  preprocess: 12\n"
    profile = profile_of(tmp_path, text)
    added = added_by(profile, environ, str(tmp_path)).variables
    assert added["DISTCC_HOSTS"] == "a/4 b/8,lzo localhost/2 --localslots_cpp=12"
    none = profile_of(tmp_path, "variables: {hosts: ''}\ndistcc:\n  hosts: ['${hosts}']\n")
    assert added_by(none, environ, str(tmp_path)).variables == {}


def test_distcc_behind_ccache_leaves_nvcc_alone_and_says_so(tmp_path: Path, environ: dict[str, str]) -> None:
    text = "cache: ccache\ndistcc:\n  hosts: [a/4]\n  fallback: no\nchecks:\n  commands: [nvcc]\n"
    added = added_by(profile_of(tmp_path, text), environ, str(tmp_path))
    assert added.variables == {
        "CMAKE_C_COMPILER_LAUNCHER": "ccache",
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
        "CMAKE_CUDA_COMPILER_LAUNCHER": "env;-u;CCACHE_PREFIX;ccache",
        "CCACHE_PREFIX": "distcc",
        "DISTCC_HOSTS": "a/4",
        "DISTCC_FALLBACK": "0",
    }
    assert any("nvcc compiles here" in note and "cache: sccache" in note for note in added.notes)


def test_icecream_alone_goes_before_c_and_cxx(tmp_path: Path, environ: dict[str, str]) -> None:
    profile = profile_of(tmp_path, "icecream:\n  scheduler: build1:8765\n  environment: /opt/gcc.tar.gz\n")
    assert added_by(profile, environ, str(tmp_path)).variables == {
        "CMAKE_C_COMPILER_LAUNCHER": "icecc",
        "CMAKE_CXX_COMPILER_LAUNCHER": "icecc",
        "ICECC_SCHEDULER": "build1:8765",
        "ICECC_VERSION": "/opt/gcc.tar.gz",
    }


def test_an_engine_that_is_not_here_is_reported_and_nothing_set(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "bin/distcc").unlink()
    added = added_by(profile_of(tmp_path, "distcc:\n  hosts: [a]\n"), environ, str(tmp_path))
    assert added.variables == {}
    assert added.notes == ("distcc is not on PATH: nothing is compiled elsewhere",)


def test_where_there_is_no_cmake_compilers_are_one_word_each(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "setup.py").touch()
    profile = profile_of(tmp_path, "cache: ccache\ndistcc:\n  hosts: [a]\n")
    added = added_by(profile, {**environ, "CXX": "g++-12 -m64"}, str(tmp_path)).variables
    assert added["CC"] == str(data_dir("launchers") / "distcc/gcc")
    assert added["CXX"] == str(data_dir("launchers") / "distcc/g++")
    assert (added["STOKER_LAUNCHER"], added["STOKER_CXX"], added["CCACHE_PREFIX"]) == (
        "ccache",
        "g++-12 -m64",
        "distcc",
    )
    assert not any(name.startswith("CMAKE") for name in added)
    (tmp_path / "CMakeLists.txt").touch()
    assert "CC" not in added_by(profile, environ, str(tmp_path)).variables
    by_hand = replace(profile, compilers="environment")
    assert "CC" in added_by(by_hand, environ, str(tmp_path)).variables


def test_a_compiler_that_a_person_has_launched_already_stays(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "Makefile").touch()
    profile = profile_of(tmp_path, "distcc:\n  hosts: [a]\n")
    mine = {"CC": "ccache gcc", "CXX": "/usr/lib/distcc/g++"}
    added = added_by(profile, {**environ, **mine}, str(tmp_path)).variables
    assert "CC" not in added
    assert "CXX" not in added


def test_with_cuda_nvcc_is_not_given_a_launcher_for_its_own_compiler(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "setup.py").touch()
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (tmp_path / "cuda/bin/nvcc").touch()
    profile = profile_of(tmp_path, "cache: sccache\nchecks:\n  cuda: '12.6'\n")
    added = added_by(profile, {**environ, "CUDA_HOME": f"{tmp_path}/cuda"}, str(tmp_path)).variables
    assert "CC" not in added
    assert added["CXX"].endswith("launchers/sccache/g++")
    assert added["PYTORCH_NVCC"] == f"sccache {tmp_path}/cuda/bin/nvcc"


@pytest.mark.parametrize("engine", ["ccache", "sccache", "distcc", "icecc"])
def test_the_scripts_call_the_compiler_through_it(tmp_path: Path, engine: str) -> None:
    (tmp_path / engine).write_text('#!/bin/sh\necho through "$@"\n')
    (tmp_path / engine).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    def says(name: str, **more: str) -> str:
        words = [str(data_dir("launchers") / engine / name), "-c", "a b.c"]
        return subprocess.check_output(words, env={**env, **more}, text=True)

    assert says("gcc") == "through gcc -c a b.c\n"
    assert says("g++", STOKER_CXX="clang++-16 -m64") == "through clang++-16 -m64 -c a b.c\n"
    assert says("g++", STOKER_LAUNCHER="", STOKER_CXX="echo") == "-c a b.c\n"


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (
            "cache: sccache\nremote_cache:\n  url: redis://a:1\n  username: me\n  password_from: MINE\n",
            {
                "SCCACHE_REDIS_ENDPOINT": "redis://a:1",
                "SCCACHE_REDIS_USERNAME": "me",
                "SCCACHE_REDIS_PASSWORD": "p@s/s",
            },
        ),
        (
            "cache: sccache\nremote_cache:\n  url: https://a/cache\n  token_from: MINE\n",
            {"SCCACHE_WEBDAV_ENDPOINT": "https://a/cache", "SCCACHE_WEBDAV_TOKEN": "p@s/s"},
        ),
        (
            "cache: sccache\nremote_cache: {url: 's3://bucket/some/where', region: eu, endpoint: 'minio:9000'}\n",
            {
                "SCCACHE_BUCKET": "bucket",
                "SCCACHE_S3_KEY_PREFIX": "some/where",
                "SCCACHE_REGION": "eu",
                "SCCACHE_ENDPOINT": "minio:9000",
            },
        ),
        (
            "cache: ccache\nremote_cache: {url: 'redis://a:1', username: me, password_from: MINE, read_only: yes}\n",
            {"CCACHE_REMOTE_STORAGE": "redis://me:p%40s%2Fs@a:1|read-only=true"},
        ),
        (
            "cache: ccache\nremote_cache:\n  url: http://a/c\n  token_from: MINE\n",
            {"CCACHE_REMOTE_STORAGE": "http://a/c|bearer-token=p@s/s"},
        ),
    ],
)
def test_a_shared_cache_gets_its_secret_from_the_environment(
    tmp_path: Path, environ: dict[str, str], text: str, variables: dict[str, str]
) -> None:
    added = added_by(profile_of(tmp_path, text), {**environ, "MINE": "p@s/s"}, str(tmp_path))
    assert {name: value for name, value in added.variables.items() if "LAUNCHER" not in name} == variables
    assert "p@s/s" not in repr((added.notes, added.cache, added.secrets))


def test_a_secret_that_is_not_set_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    profile = profile_of(tmp_path, "cache: sccache\ndist:\n  scheduler: http://a:1\n  token_from: MINE\n")
    added = added_by(profile, environ, str(tmp_path))
    assert added.secrets == ("MINE",)
    assert any("MINE is not set" in note for note in added.notes)
