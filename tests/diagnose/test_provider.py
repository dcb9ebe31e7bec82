"""What brings a name: the tables know it in each of its forms, and every row is usable."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stoker.config.config_error import ConfigError
from stoker.diagnose.provider import FACES, MESSAGE, load_providers, looked_up, provider_of, providers
from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan


@pytest.mark.parametrize(
    ("lookup", "name", "brings"),
    [
        ("headers", "zlib.h", "apt install zlib1g-dev"),
        ("headers", "openssl/ssl.h", "apt install libssl-dev"),
        ("headers", "NvInferPlugin.h", "pip install tensorrt"),
        ("headers", "GL/glew.h", "apt install libglew-dev"),
        ("libraries", "boost_filesystem", "apt install libboost-all-dev"),
        ("sonames", "libGL.so.1", "apt install libgl1 "),
        ("sonames", "@rpath/libtbb.12.dylib", "brew install tbb"),
        ("pkgconfig", "glib-2.0", "apt install libglib2.0-dev"),
        ("cmake", "opencv", "apt install libopencv-dev"),
        ("modules", "google.protobuf.message", "python -m pip install protobuf"),
        ("modules", "cv2", "python -m pip install opencv-python-headless"),
        ("programs", "/usr/bin/protoc", "protobuf-compiler"),
        ("symbols", "png_create_read_struct", "libpng-dev"),
        ("symbols", "_png_create_read_struct", "libpng-dev"),
        ("symbols", "cv::imread(std::string const&, int)", "libopencv-dev"),
        ("symbols", "void boost::throw_exception<E>(E const&)", "libboost-all-dev"),
        ("symbols", "std::vector<at::Tensor> cv::f(int)", "libopencv-dev"),
        ("symbols", "vtable for YAML::Exception", "libyaml-cpp-dev"),
        ("symbols", "_ZN2cv6imreadERKSs", "libopencv-dev"),
        ("symbols", "_ZNK6google8protobuf7Message11DebugStringEv", "libprotobuf-dev"),
        ("any", "libcurl", "libcurl4-openssl-dev"),
        ("message", "*** OpenSSL libraries not found", "libssl-dev"),
        ("message", "Please install hdf5.h first", "libhdf5-dev"),
    ],
)
def test_a_name_is_known_in_its_forms(lookup: str, name: str, brings: str) -> None:
    found = looked_up(lookup, name)
    assert found is not None
    assert brings in found["install"]


@pytest.mark.parametrize(
    ("lookup", "name"),
    [
        ("headers", "zlib.hpp"),
        ("headers", "myproject/zlib.h"),
        ("symbols", "btree_insert"),
        ("symbols", "cudaSmooth(float*, int)"),
        ("symbols", "_Z10cudaSmoothPfi"),
        ("symbols", "project::cv::f()"),
        ("symbols", "_Z"),
        ("symbols", "_ZN999x"),
        ("programs", ""),
        ("libraries", "*"),
        ("message", "OpenSSL was found"),
        ("message", "the file that you want is missing, check the path and try to install it"),
    ],
)
def test_what_only_looks_like_it_is_not_known(lookup: str, name: str) -> None:
    assert looked_up(lookup, name) is None


def test_a_function_that_returns_what_another_library_has_is_of_its_own() -> None:
    found = provider_of("symbols", "google::protobuf::Message* grpc::f<absl::string_view>(absl::Span<int>)")
    assert found is not None
    assert found.name == "gRPC"


def test_there_are_some_hundred_rows_and_none_is_empty() -> None:
    assert 400 <= len(providers()) <= 900
    for row in providers():
        assert row.install(), row.name
        assert any(row.faces.values()), row.name
        for names in row.faces.values():
            assert len(names) == len(set(names)), row.name


@pytest.mark.parametrize("face", FACES)
def test_no_name_belongs_to_two(face: str) -> None:
    seen: dict[str, str] = {}
    for row in providers():
        for name in row.faces.get(face, ()):
            assert seen.setdefault(name, row.name) == row.name, name


def test_a_package_is_no_command(tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text("zlib: {apt: zlib1g-dev; reboot, headers: zlib.h}\n")
    with pytest.raises(ConfigError, match="not a list of packages"):
        load_providers(file)
    file.write_text("zlib: {headers: zlib.h}\n")
    with pytest.raises(ConfigError, match="names no package, and has no note"):
        load_providers(file)


def test_an_unknown_name_is_left_to_the_general_rule() -> None:
    log = "a.cpp:1:1: fatal error: {}: No such file or directory\n"
    known, unknown = (scan(io.BytesIO(log.format(h).encode()), shipped_rules()) for h in ("zlib.h", "ofnobody.h"))
    assert [match.rule.id for match in known] == ["header-of-package"]
    assert [match.rule.id for match in unknown] == ["missing-header"]


def test_a_name_from_a_log_gets_into_no_remedy_unchecked() -> None:
    log = "ld: cannot find -lboost_$(reboot): No such file or directory\n"
    (match,) = scan(io.BytesIO(log.encode()), shipped_rules())
    assert "reboot" not in match.remedy
    assert re.search("reboot", match.why) is None


@pytest.mark.long
def test_apt_knows_every_package_of_the_distribution() -> None:
    if shutil.which("apt-cache") is None:
        pytest.skip("no apt")
    said = [f"{row.packages.get('apt', '')} {row.runtime}" for row in providers() if not row.archive]
    names = sorted({word for words in said for word in words.split()})
    shown = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True, check=True).stdout
    blocks = re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: (\S+)", shown, re.MULTILINE)
    known = {name for name, candidate in blocks if candidate != "(none)"}
    if len(known) < len(names) // 2:
        pytest.skip("apt has no lists: apt-get update")
    assert sorted(set(names) - known) == []


@pytest.mark.parametrize(
    ("message", "provider"),
    [
        ("Cannot find libfoo, needed by hdf5", None),
        ("Python 3 is required, install curl to download it", None),
        ("Could not find an activated virtualenv (required).", None),
        ("Cannot find what is required, please install libcurl", "curl"),
        ("libfoo needs FFTW3, please install it", "FFTW"),
    ],
)
def test_a_message_is_about_what_it_says_is_missing(message: str, provider: str | None) -> None:
    found = provider_of(MESSAGE, message)
    assert (found and found.name) == provider
