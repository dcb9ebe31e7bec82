"""A remedy speaks the tool of the log, and a cause is no package where a part of the project is missing."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.match import Match
from stoker.diagnose.provider import provider_of
from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan

NO_TORCH = "ModuleNotFoundError: No module named 'torch'\n"


def causes(text: str) -> list[Match]:
    return scan(io.BytesIO(text.encode()), shipped_rules())


@pytest.mark.parametrize("mark", ["  × Failed to build `flash-attn==2.8.3`", '  File "/c/uv/builds-v0/.tmpX/lib/a.py"'])
def test_in_a_log_of_uv_the_remedy_is_uvs(mark: str) -> None:
    remedy = causes(f"{mark}\n{NO_TORCH}")[0].remedy
    assert "uv sync --no-build-isolation-package" in remedy
    assert "extra-build-dependencies" in remedy
    assert "python -m pip" not in remedy


def test_in_a_log_of_poetry_the_remedy_is_for_its_environment() -> None:
    log = f"ChefBuildError\n{NO_TORCH}note: This error is likely not a problem with poetry but with x.\n"
    assert "poetry run python -m pip install" in causes(log)[0].remedy


def test_a_remedy_without_words_of_its_own_has_pips_commands_as_uv_calls_them() -> None:
    log = "  × Failed to build `a==1`\nImportError: numpy.core.multiarray failed to import\n"
    assert causes(log)[0].remedy.startswith("uv pip install 'numpy<2'")


def test_versions_for_an_isolated_build_are_given_as_pip_or_uv_reads_them() -> None:
    line = "Cython.Compiler.Errors.CompileError: p.pyx\n"
    assert "export PIP_CONSTRAINT=$PWD/constraint.txt PIP_BUILD_CONSTRAINT=$PWD/" in causes(line)[0].remedy
    by_uv = causes(f"  × Failed to build `a==1`\n{line}")[0].remedy
    assert "export UV_BUILD_CONSTRAINT=$PWD/constraint.txt" in by_uv
    assert "PIP_" not in by_uv


def test_in_a_log_of_pip_the_remedy_is_pips() -> None:
    assert "uv " not in causes(NO_TORCH)[0].remedy


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("OpenCV requires enabled 'cudev' module from the second repository", None),
        ("VTK needs the module that is switched off", None),
        ("This program requires zlib", "zlib"),
        ("zlib needs to be installed", "zlib"),
    ],
)
def test_the_one_that_asks_is_not_what_is_missing(message: str, missing: str | None) -> None:
    found = provider_of("message", message)
    assert (found.name if found else None) == missing


def test_a_part_of_the_project_that_is_missing_is_no_package() -> None:
    log = "CMake Error at modules/core/CMakeLists.txt:1 (message):\n  OpenCV requires enabled 'cudev' module from\n"
    assert [m.rule.id for m in causes(log)] == ["project-module-left-out"]


def test_of_one_line_of_source_the_error_that_tells_the_cause_is_named() -> None:
    log = (
        "a.h:9:8: error: variable or field ‘f’ declared void\n"
        "a.h:10:24: error: ‘uintptr_t’ was not declared in this scope\n"
        "b.h:3:4: error: ‘int Signals::f()’ should have been declared inside ‘x’\n"
    )
    assert [m.rule.id for m in causes(log)] == ["cstdint-missing"]


def test_what_another_line_of_source_lacks_may_follow_from_the_first_error() -> None:
    log = "a.h:9:8: error: expected ‘;’ before ‘x’\na.h:30:24: error: ‘uintptr_t’ was not declared in this scope\n"
    assert causes(log)[0].rule.id == "compile-error"


def test_a_pin_without_a_wheel_for_a_new_python_is_named_beside_missing_rust() -> None:
    log = "creating build/lib.linux-x86_64-cpython-{}/t\nerror: can't find Rust compiler\n"
    assert [m.rule.id for m in causes(log.format(313))] == ["no-wheel-and-no-rust"]
    assert [m.rule.id for m in causes(log.format(39))] == ["rust-missing"]


def test_condas_old_libstdcxx_is_named_where_the_link_searches_its_folder() -> None:
    undefined = "/usr/bin/ld: liba.so: undefined reference to `std::f()@GLIBCXX_3.4.30'\n"
    assert causes(undefined)[0].rule.id == "libstdcxx-older-in-link"
    assert causes(f"c++ -L/home/u/miniconda3/envs/a/lib a.o\n{undefined}")[0].rule.id == "conda-libstdcxx-in-link"


def test_condas_folder_in_an_rpath_alone_does_not_say_which_libstdcxx_is_old() -> None:
    undefined = "/usr/bin/ld: liba.so: undefined reference to `std::f()@GLIBCXX_3.4.30'\n"
    log = f"c++ a.o -Wl,-rpath,/home/u/miniforge3/envs/a/lib /home/u/miniforge3/envs/a/lib/liba.so\n{undefined}"
    assert causes(log)[0].rule.id == "libstdcxx-older-in-link"


def test_in_a_log_of_nix_nothing_is_installed() -> None:
    log = "Running phase: buildPhase\nModuleNotFoundError: No module named 'psutil'\n"
    assert causes(log)[0].remedy.startswith("In a Nix derivation nothing can be installed")


def test_in_a_log_of_bazel_its_own_option_says_how_many_run() -> None:
    log = "INFO: Analyzed target //:app (1 loaded).\ng++: fatal error: Killed signal terminated program cc1plus\n"
    assert "bazel build --jobs=2" in causes(log)[0].remedy


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            "ERROR: No matching distribution found for torch==2.7.1+cu128",
            "uv pip install --torch-backend=cu128 'torch==2.7.1'",
        ),
        ("there is no version of torchvision==0.21.0+cpu and you", "path ends with /whl/cpu"),
    ],
)
def test_a_build_of_torch_for_one_cuda_is_on_its_own_index(line: str, remedy: str) -> None:
    assert remedy in causes(f"{line}\n")[0].remedy


def test_a_message_that_goes_on_in_the_next_line_names_both_versions() -> None:
    log = "The detected CUDA version (12.4) mismatches the version that was used to compile\nPyTorch (11.8).\n"
    (match,) = causes(log)
    assert match.text.endswith("compile PyTorch (11.8).")


BLANK_CUDA_HOME = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.\n"


@pytest.mark.parametrize(
    "mark",
    [
        "#1 [internal] load build definition from Dockerfile",
        'ERROR: process "/bin/sh -c pip install ." did not complete successfully: exit code: 1',
    ],
)
def test_in_the_build_of_an_image_a_remedy_says_how_a_dockerfile_sets_variables(mark: str) -> None:
    assert "ENV NAME=VALUE" in causes(f"{BLANK_CUDA_HOME}{mark}\n")[0].remedy
    assert "ENV" not in causes(BLANK_CUDA_HOME)[0].remedy


def test_a_remedy_that_names_env_itself_is_left_alone() -> None:
    log = "error: No virtual environment found; run `uv venv`\n#1 [internal] load build definition from Dockerfile\n"
    assert causes(log)[0].remedy.count("ENV") == 2


NO_ZLIB = "a.c:1:10: fatal error: zlib.h: No such file or directory\n"


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("gcc (GCC) 11.4.1 20230605 (Red Hat 11.4.1-2)", "dnf install zlib-devel (Debian, Ubuntu: apt install zlib1g"),
        ("[2/5] RUN dnf install -y gcc make", "dnf install zlib-devel"),
        ("gcc (Ubuntu 13.2.0) 13.2.0", "apt install zlib1g-dev (Fedora: dnf install"),
        ("RUN apt-get install gcc || yum install gcc", "apt install zlib1g-dev (Fedora: dnf install"),
        ("#6 1.2 (1/9) RUN apk add gcc", "apt install zlib1g-dev"),
        ("$ srun -n1 make", "On a cluster, where one is not root, look for a module first (module avail"),
    ],
)
def test_a_package_is_named_as_the_logs_own_system_does(said: str, begins: str) -> None:
    assert causes(f"{said}\n{NO_ZLIB}")[0].remedy.startswith(begins)


def test_alpine_is_told_its_own_package_where_the_remedy_knows_it() -> None:
    log = "#5 0.8 + apk add gcc\n../meson.build:24:0: ERROR: Python dependency not found\n"
    assert "apk add python3-dev (Debian, Ubuntu: apt install" in causes(log)[0].remedy


@pytest.mark.parametrize(
    ("said", "rule", "says", "not_said"),
    [
        (
            "self-signed certificate in certificate chain (_ssl.c:1006)",
            "certificate-self-signed",
            "ca.pem",
            "date shows",
        ),
        ("certificate is not yet valid (_ssl.c:1006)", "certificate-not-yet-valid", "timedatectl", "ca.pem"),
        ("certificate has expired (_ssl.c:1006)", "certificate-date", "--reinstall ca-certificates", "ca.pem"),
        ("unable to get local issuer certificate (_ssl.c:1)", "certificate-issuer-unknown", "ca.pem", "timedatectl"),
        (
            "Hostname mismatch, certificate is not valid for 'a.b'.",
            "certificate-of-another-host",
            "whose",
            "timedatectl",
        ),
    ],
)
def test_a_certificate_has_the_one_cause_that_its_message_names(said: str, rule: str, says: str, not_said: str) -> None:
    line = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {said}"
    log = f"WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError({line})': /simple/pip/\n"
    first = causes(f"{log}ERROR: No matching distribution found for torch\n")[0]
    assert first.rule.id == rule
    assert says in first.remedy
    assert not_said not in first.remedy


def test_a_proxy_that_asks_for_a_login_is_not_unset() -> None:
    said = "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: {}'))"
    assert "USER:PASSWORD" in causes(said.format("407 Proxy Authentication Required"))[0].remedy
    assert "unset" not in causes(said.format("407 Proxy Authentication Required"))[0].remedy
    assert causes(said.format("403 Forbidden"))[0].rule.id == "proxy-forbids"


def test_an_image_that_is_pulled_after_all_is_not_missing() -> None:
    log = "Error response from daemon: No such image: a/b:1\n1: Pulling from a/b\nexec /bin/sh: exec format error\n"
    assert causes(log)[0].rule.id == "docker-other-platform"


def test_the_network_is_not_taken_for_the_rights_of_an_apptainer_build() -> None:
    log = 'FATAL:   While performing build: conveyor failed to get: Get "https://a.b/v1": dial tcp 192.0.2.1:443: {}\n'
    assert causes(log.format("i/o timeout"))[0].rule.id == "fetch-failed"
