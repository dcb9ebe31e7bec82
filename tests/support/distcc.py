"""distcc for tests: servers on loopback with addresses, ports and compilers of their own, and projects for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.program import until

UNIT = "#include <string>\nint unit{n}(const std::string& s) {{ return static_cast<int>(s.size()) + {n}; }}\n"

HEAVY_UNIT = """\
#include <functional>
#include <map>
#include <string>
std::size_t unit{n}(const std::string& s) {{
  std::map<std::string, std::function<std::size_t()>> m;
  m["x"] = [&] {{ return s.size() + {n}; }};
  return m["x"]();
}}
"""

NINJA = """\
rule cxx
  command = distcc g++ -O1 -fPIC -c $in -o $out
rule link
  command = g++ -shared $in -o $out
{edges}
build all.so: link {objects}
"""

SLOW = """\
#!/bin/sh
# A server's compiler: it waits for the test's word and then some seconds, and takes no core meanwhile.
until [ -e {word} ]; do sleep 0.2; done
sleep {seconds}
exec {compiler} "$@"
"""


class Farm:
    """Servers below a folder, and the environment of clients that use them."""

    def __init__(self, folder: Path) -> None:
        for program in ("distcc", "distccd", "g++"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")
        self.folder = folder
        # A server of root's goes on as another user, who may not look into a test's folder.
        self._open = Path(tempfile.mkdtemp(prefix="distccd-"))
        self._open.chmod(0o755)
        self._word = self._open / "go"
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        self._hosts: list[str] = []
        self._port = _free_port()
        (folder / "client").mkdir(parents=True)

    def start(self, address: str, slots: int, seconds: int = 0) -> None:
        """A server at an address of the loopback network, whose compilers wait until they are let go."""
        path = self._open / address
        path.mkdir()
        for name in ("g++", "x86_64-linux-gnu-g++"):
            slow = path / name
            slow.write_text(SLOW.format(word=self._word, seconds=seconds, compiler=shutil.which("g++")))
            slow.chmod(0o755)
        words = ["distccd", "--daemon", "--no-detach", "--enable-tcp-insecure", "--allow", "127.0.0.0/8"]
        words += ["--listen", address, "--port", str(self._port), "--jobs", str(slots), "--log-stderr"]
        env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        with (path / "log").open("wb") as log:
            self.servers[address] = subprocess.Popen(words, env=env, stdout=log, stderr=log, start_new_session=True)
        self._hosts.append(f"{address}:{self._port}/{slots}")
        until(lambda: _answers(address, self._port), "the server's start")

    @property
    def env(self) -> dict[str, str]:
        """What clients need to know."""
        return {"DISTCC_DIR": str(self.folder / "client"), "DISTCC_HOSTS": " ".join(self._hosts)}

    def let_go(self) -> None:
        """From now on the servers compile."""
        self._word.touch()

    def kill(self, address: str) -> None:
        """Kill a server with all that it does: its compilers have groups of their own, and hold the connections."""
        server = self.servers.pop(address)
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, IndexError, ValueError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == server.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
        server.wait()

    def end(self) -> None:
        """Kill all servers."""
        for address in list(self.servers):
            self.kill(address)
        shutil.rmtree(self._open)


def write_build(folder: Path, units: int, *, heavy: bool = False) -> Path:
    """A build of small sources behind distcc, with a link at its end; heavy ones take a compiler about a second."""
    folder.mkdir()
    for n in range(units):
        (folder / f"u{n}.cpp").write_text((HEAVY_UNIT if heavy else UNIT).format(n=n))
    edges = "\n".join(f"build u{n}.o: cxx u{n}.cpp" for n in range(units))
    objects = " ".join(f"u{n}.o" for n in range(units))
    (folder / "build.ninja").write_text(NINJA.format(edges=edges, objects=objects))
    return folder


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True
