"""Where a shared cache is, by what the caches themselves read; and whether it answers, by real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.sense.caches.endpoints import MAX_ENDPOINTS, CachePlace, endpoints
from stoker.sense.caches.probe import probe
from support.redis_server import free_port, redis_server


def names(env: dict[str, str], said: str = "") -> list[str]:
    return [f"{e.tool} {e.name}" for e in endpoints({"HOME": "/nowhere", **env}, said)]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, []),
        ({"SCCACHE_REDIS_ENDPOINT": "redis://a:1"}, ["sccache redis://a:1"]),
        ({"SCCACHE_REDIS": "rediss://me:pw@a/?db=1"}, ["sccache rediss://a:6379"]),
        (
            {"SCCACHE_REDIS_CLUSTER_ENDPOINTS": "redis://a:1,redis://b:2"},
            ["sccache redis://a:1", "sccache redis://b:2"],
        ),
        ({"SCCACHE_MEMCACHED_ENDPOINT": "tcp://[::1]:11"}, ["sccache memcached://[::1]:11"]),
        ({"SCCACHE_WEBDAV_ENDPOINT": "http://a/some.php"}, ["sccache http://a:80"]),
        ({"SCCACHE_BUCKET": "b", "SCCACHE_REGION": "eu-west-1"}, ["sccache https://s3.eu-west-1.amazonaws.com:443"]),
        ({"SCCACHE_BUCKET": "b", "SCCACHE_ENDPOINT": "minio:9000"}, ["sccache http://minio:9000"]),
        (
            {"CCACHE_REMOTE_STORAGE": "redis://:pw@a|share-hosts=x http://b:8/c"},
            ["ccache redis://a:6379", "ccache http://b:8"],
        ),
        ({"CCACHE_REMOTE_STORAGE": "redis+unix:/run/redis.sock"}, ["ccache redis+unix:/run/redis.sock"]),
        ({"CCACHE_REMOTE_STORAGE": "file:///mnt/cache"}, []),
        ({"SCCACHE_REDIS_ENDPOINT": "redis://a:notaport"}, []),
    ],
)
def test_what_caches_read_of_the_environment(env: dict[str, str], expected: list[str]) -> None:
    assert names(env) == expected


def test_what_they_read_of_their_files(tmp_path: Path) -> None:
    conf = tmp_path / "config"
    conf.write_text('[cache.redis]\nendpoint = "redis://a:1"\npassword = "pw"\n')
    assert names({"SCCACHE_CONF": str(conf)}) == ["sccache redis://a:1"]
    assert names({"SCCACHE_CONF": str(conf), "SCCACHE_REDIS_ENDPOINT": "redis://b:2"}) == ["sccache redis://b:2"]
    conf.write_bytes(b"\xff[")
    assert names({"SCCACHE_CONF": str(conf)}) == []
    assert names({}, "redis://a:1|connect-timeout=5\n") == ["ccache redis://a:1"]


def test_no_secret_is_kept_and_not_more_than_a_few() -> None:
    many = ",".join(f"redis://u:hunter2@h{n}" for n in range(100))
    found = endpoints({"HOME": "/", "SCCACHE_REDIS_CLUSTER_ENDPOINTS": many})
    assert len(found) == MAX_ENDPOINTS
    assert "hunter2" not in repr(found)


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    for name in ("SCCACHE_REDIS_ENDPOINT", "SCCACHE_BUCKET", "SCCACHE_ENDPOINT", "CCACHE_REMOTE_STORAGE"):
        endpoints({"HOME": "/nowhere", "SCCACHE_BUCKET": "b", name: text})


@contextlib.contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that says this to whoever comes, None: nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = contextlib.ExitStack()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection = kept.enter_context(server.accept()[0])
                    if answer is not None:
                        with contextlib.suppress(OSError), connection:
                            connection.recv(4096)
                            connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with kept:
            yield server.getsockname()[1]
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def of(url: str) -> CachePlace:
    name = {"redis": "SCCACHE_REDIS_ENDPOINT", "http": "SCCACHE_WEBDAV_ENDPOINT"}.get(url.partition(":")[0], "")
    (endpoint,) = endpoints({"HOME": "/nowhere", name or "SCCACHE_MEMCACHED_ENDPOINT": url})
    return endpoint


@pytest.mark.parametrize(
    ("scheme", "answer", "problem"),
    [
        ("redis", b"+PONG\r\n", ""),
        ("redis", b"-NOAUTH Authentication required.\r\n", ""),
        ("redis", b"HTTP/1.1 400 Bad Request\r\n", "what listens there is not a redis server"),
        ("redis", b"", "it hangs up without an answer"),
        ("http", b"HTTP/1.1 401 Unauthorized\r\n\r\n", ""),
        ("http", b"SSH-2.0-OpenSSH\r\n", "what listens there is not a http server"),
        ("tcp", b"VERSION 1.6.18\r\n", ""),
        ("redis", b"x" * 100_000, "what listens there is not a redis server"),
    ],
)
def test_only_an_answer_counts(scheme: str, answer: bytes, problem: str) -> None:
    with listening(answer) as port:
        assert probe(of(f"{scheme}://127.0.0.1:{port}"), 5.0).problem == problem


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with listening(None) as port:
        began = time.monotonic()
        answered = probe(of(f"redis://127.0.0.1:{port}"), 0.2)
        assert answered.problem == "no answer in 0.2 s"
        assert time.monotonic() - began < 5.0


def test_where_nobody_listens() -> None:
    assert probe(of(f"redis://127.0.0.1:{free_port()}"), 5.0).problem == "connection refused"
    assert probe(of("redis://no.such.host.invalid:1"), 5.0).problem


def test_a_real_redis_that_is_stopped_goes_on_and_is_killed(tmp_path: Path) -> None:
    with redis_server(tmp_path) as redis:
        assert probe(of(redis.url), 5.0).problem == ""
        redis.stop()
        assert probe(of(redis.url), 0.3).problem == "no answer in 0.3 s"
        redis.go_on()
        assert probe(of(redis.url), 5.0).problem == ""
        redis.kill()
        assert probe(of(redis.url), 5.0).problem == "connection refused"


def test_a_real_redis_with_a_password_answers_without_it(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "hunter2") as redis:
        assert probe(of(redis.url), 5.0).problem == ""
