"""What of a build's environment is kept for going on with it, and what never reaches the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.launch.saved_environment import is_kept, load_environment, save_environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("aws_session_token", "x"), ("DB_PASSWORD", "x"),
        ("PYPI_API_KEY", "x"), ("SSH_AUTH_SOCK", "/tmp/x"), ("https_proxy", "http://ann:pw@proxy:3128"),
        ("PIP_INDEX_URL", "https://user:glpat-12345678@host/simple"), ("X", "ghp_0123456789"),
        ("DEPLOY", "-----BEGIN OPENSSH PRIVATE KEY-----"), ("DISPLAY", ":0"), ("XDG_RUNTIME_DIR", "/run/user/1"),
        ("HOME", "/home/ann"), ("STOKER_READY_FD", "3"),
        ("MYSQL_PWD", "x"), ("SSHPASS", "x"), ("MY_PASS", "x"), ("DB_PASS_1", "x"), ("KRB5_PW", "x"),
        ("CI_JOB_JWT", "x"), ("RESTIC_CREDS", "x"), ("SENTRY_DSN", "x"), ("REPORT_TO", "https://0123abcd@sentry.example/1"),
        ("MAVEN_OPTS", "-Xmx2g -Dhttps.proxyPassword=x"), ("CURL_OPTS", "-s -u me:pw"), ("WGET", "--user=me:pw"),
        ("LDAP_BIND", "x"), ("VAULT_UNSEAL", "x"), ("HEADERS", "authorization: basic eDp5"),
        ("GIT_CONFIG_VALUE_0", "x"), ("GIT_CONFIG_KEY_0", "http.extraheader"), ("GIT_CONFIG_COUNT", "1"),
    ],
)  # fmt: skip
def test_secrets_and_the_logins_own_are_not_kept(name: str, value: str) -> None:
    assert not is_kept(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCH_CUDA_ARCH_LIST", "9.0+PTX"), ("PATH", "/usr/bin"), ("CUDA_HOME", "/usr/local/cuda"), ("MAX_JOBS", "4"),
        ("CFLAGS", "-O2 -DKEYBOARD"), ("PYTHONPATH", "/a:/b"), ("CMAKE_PREFIX_PATH", "/opt"), ("LC_ALL", "C"),
        ("PWD", "/src"), ("INIT_CWD", "/src"), ("OMP_PROC_BIND", "close"), ("GIT_CONFIG_GLOBAL", "/etc/gitconfig"),
        ("REPO", "ssh://git@host/repo.git"), ("CXXFLAGS", "-I/a:b -u main"), ("PASSES", "3"), ("MPATH", "a://b/c@2"),
        ("http_proxy", "http://proxy:3128"), ("VIRTUAL_ENV", "/venv"), ("LD_LIBRARY_PATH", "/usr/lib"),
    ],
)  # fmt: skip
def test_what_a_build_is_made_with_is_kept(name: str, value: str) -> None:
    assert is_kept(name, value)


def test_the_builds_own_variables_come_back_and_the_rest_is_the_present_logins(tmp_path: Path) -> None:
    path = tmp_path / "environment.json"
    odd = b"\xff\xfe".decode("utf-8", "surrogateescape")
    save_environment(path, {"CC": "clang", "ODD": odd, "HF_TOKEN": "hf_then", "HOME": "/then"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"hf_then" not in path.read_bytes()
    now = {"CC": "gcc", "MAX_JOBS": "2", "HF_TOKEN": "hf_now", "HOME": "/now"}
    kept = load_environment(path, now)
    assert kept is not None
    assert kept.environ == {"CC": "clang", "ODD": odd, "HF_TOKEN": "hf_now", "HOME": "/now"}
    assert kept.missing == ()


def test_it_tells_which_secrets_are_not_at_hand(tmp_path: Path) -> None:
    path = tmp_path / "environment.json"
    then = {"CC": "clang", "HF_TOKEN": "hf_then", "https_proxy": "http://ann:pw@proxy", "SSH_AUTH_SOCK": "/then"}
    save_environment(path, then, missing=["NETRC_PASSWORD"])
    kept = load_environment(path, {"HF_TOKEN": "hf_now"})
    assert kept is not None
    assert kept.missing == ("NETRC_PASSWORD", "https_proxy")


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b'{"kept": {"a": 1}, "left_out": []}', b'{"kept": [], "left_out": []}', b"{", None]
)
def test_a_file_that_is_gone_or_damaged_is_no_environment(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "environment.json"
    if content is not None:
        path.write_bytes(content)
    assert load_environment(path, {"CC": "gcc"}) is None
