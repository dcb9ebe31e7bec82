"""What the dynamic linker or pip would refuse is said before: symbols, versions, libraries, machine, Python."""

from __future__ import annotations

import contextlib
import re
import struct
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from stoker.model.report import Problem, Report
from stoker.show.report_text import verdict_line
from stoker.verify.binary.byte_source import FileSource, MemorySource, UnreadableError
from stoker.verify.binary.elf import read_elf
from stoker.verify.binary.symbols import NeededSymbol, Symbols, read_symbols
from stoker.verify.pipeline import VerifyRequest, verify
from support.compiled import compile_to

Compile = Callable[..., Path]
Write = Callable[..., Path]

C10 = """
#include <string>
namespace c10 { struct SourceLocation { int line; }; struct Error { Error(SourceLocation, std::string); };
  Error::Error(SourceLocation, std::string) {} }
"""
EXTENSION = """
#include <string>
namespace c10 { struct SourceLocation { int line; }; struct Error { Error(SourceLocation, std::string); }; }
extern "C" void *PyModule_Create2(void *, int);
extern "C" void *PyInit__C() { c10::Error made(c10::SourceLocation{1}, "x"); return PyModule_Create2(nullptr, 1); }
"""
ANOTHER_TORCH = "_ZN3c105ErrorC1ENS_14SourceLocationESs"
"""What flash-attention's users see when torch was built with the other C++ ABI."""

TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
HERE = f"pack-1.0-{TAG}-{TAG}-linux_x86_64.whl"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An active Python environment of the test's own, with nothing installed in it."""
    venv.create(tmp_path / "env", symlinks=True)
    return {"VIRTUAL_ENV": str(tmp_path / "env"), "PATH": str(tmp_path / "env/bin")}


@pytest.fixture
def install(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Path]:
    """`install(name, version, library)` puts a package with one library into that environment, as pip would."""
    del environment
    [site] = (tmp_path / "env/lib").glob("python*/site-packages")

    def put(name: str, version: str, library: Path, folder: str = "lib") -> Path:
        place = site / name.replace("-", "_") / folder / library.name
        place.parent.mkdir(parents=True)
        place.write_bytes(library.read_bytes())
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{place.relative_to(site)},,\n")
        return place

    return put


def build(path: Path, source: str, *arguments: str) -> Path:
    compile_to(path, source, ["g++", "-shared", "-fPIC", "-x", "c++"], *arguments)
    return path


@pytest.fixture
def old_abi(tmp_path: Path) -> Path:
    """An extension that was built for a torch with the old C++ ABI."""
    old = build(tmp_path / "old/libc10.so", C10, "-D_GLIBCXX_USE_CXX11_ABI=0", "-Wl,-soname,libc10.so")
    return build(tmp_path / "built/_C.so", EXTENSION, "-D_GLIBCXX_USE_CXX11_ABI=0", str(old))


@pytest.fixture
def torch(tmp_path: Path, install: Callable[..., Path]) -> Path:
    """An installed torch, as far as its libc10.so goes; its ABI is the new one."""
    return install("torch", "2.15.0", build(tmp_path / "new/libc10.so", C10, "-Wl,-soname,libc10.so"))


def judged(path: Path, environment: dict[str, str], *devices: str) -> Report:
    return verify(VerifyRequest([str(path)], devices=devices, environment=environment))


def grave(report: Report) -> list[Problem]:
    return [p for p in report.problems if p.severity == "error"]


def ldd(path: Path) -> str:
    """What the dynamic linker itself says. It runs the file, which is why stoker does not use it."""
    done = subprocess.run(["ldd", "-r", str(path)], capture_output=True, text=True)
    return done.stdout + done.stderr


class TestAnotherTorch:
    """An extension that was built for another torch than the one installed."""

    @pytest.mark.usefixtures("torch")
    def test_its_undefined_symbol_is_an_error(self, old_abi: Path, environment: dict[str, str]) -> None:
        report = judged(old_abi, environment)

        [problem] = grave(report)
        assert problem.what.startswith(f"undefined symbol: {ANOTHER_TORCH}: ")
        assert "a different torch" in problem.remedy
        assert (report.verdict, report.exit_status()) == ("no", 1)

    @pytest.mark.usefixtures("torch")
    def test_so_it_is_in_a_wheel(self, old_abi: Path, wheel: Write, environment: dict[str, str]) -> None:
        report = judged(wheel({"pack/_C.so": old_abi.read_bytes()}, HERE, requires=["torch"]), environment)

        assert ANOTHER_TORCH in grave(report)[0].what
        assert report.exit_status() == 1

    def test_the_torch_that_it_was_built_for_is_fine(
        self, tmp_path: Path, torch: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """Python's own symbols come from Python, torch's libraries from the torch that is imported before."""
        right = build(tmp_path / "built/_C.so", EXTENSION, str(torch))

        assert grave(judged(right, environment)) == []
        assert judged(wheel({"pack/_C.so": right.read_bytes()}, HERE), environment).exit_status() == 0

    def test_without_any_torch_nothing_is_said_of_its_symbols(self, old_abi: Path, environment: dict[str, str]) -> None:
        report = judged(old_abi, environment)

        assert grave(report) == []
        [note] = [p for p in report.problems if "torch brings it" in p.what]
        assert "libc10.so" in note.what

    @pytest.mark.usefixtures("torch")
    def test_a_torch_of_another_version_than_the_required_one_proves_nothing(
        self, old_abi: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """pip would replace it."""
        report = judged(wheel({"pack/_C.so": old_abi.read_bytes()}, HERE, requires=["torch==2.7"]), environment)

        assert grave(report) == []


class TestWhatIsImportedAtOnce:
    """An extension that does not load stops the package whose import needs it, and no other."""

    @pytest.fixture
    def extensions(self, old_abi: Path, cc: Compile) -> dict[str, bytes]:
        """One that was built for another torch, and one that loads."""
        return {"pack/ops/_C.abi3.so": old_abi.read_bytes(), "helper.abi3.so": cc("helper.so").read_bytes()}

    @pytest.mark.usefixtures("torch")
    @pytest.mark.parametrize(
        ("init", "ops", "verdict"),
        [
            ("from .ops import f\n", "from . import _C\n", "no"),
            ("from pack import ops\n", "import pack.ops._C as _C\n", "no"),
            (
                "import pack.ops\n",
                "try:\n    from ._C import f\nexcept ImportError as e:\n    raise RuntimeError from e\n",
                "no",
            ),
            ("from .ops import f\n", "try:\n    from . import _C\nexcept ImportError:\n    _C = None\n", "part"),
            ("try:\n    from . import ops\nexcept Exception:\n    pass\n", "from . import _C\n", "part"),
            ("", "from . import _C\n", "part"),
            ("def f():\n    from .ops import _C\n", "", "part"),
            ("from .ops import f\n", "if x:\n    from . import _C\n", "part"),
            ("from .ops import (\n", "from . import _C\n", "part"),
            ("from . import ops\n", "from helper import built\nif built():\n    from . import _C\n", "no"),
            ("from . import ops\n", "LIBRARIES = ['_C']\nfor name in LIBRARIES:\n    load_library(name)\n", "no"),
            ("from . import ops\n", "NAMES = ['_C']\ntry:\n    load_library(x)\nexcept Exception:\n    pass\n", "part"),
        ],
    )
    def test_what_importing_the_package_imports_has_to_load(
        self, wheel: Write, environment: dict[str, str], extensions: dict[str, bytes], init: str, ops: str, verdict: str
    ) -> None:
        """torch_harmonics imports attention._C at once; beside it lie helpers that load."""
        sources = {"pack/__init__.py": init.encode(), "pack/ops/__init__.py": ops.encode()}

        report = judged(wheel({**extensions, **sources}, HERE, requires=["torch"]), environment, "H100")

        assert (report.verdict, report.devices[0].verdict) == (verdict, verdict)
        assert report.exit_status() == int(verdict == "no")

    @pytest.mark.usefixtures("torch")
    @pytest.mark.parametrize(
        ("caught", "verdict"),
        [("ImportError", "part"), ("ModuleNotFoundError", "no"), ("(OSError, Exception)", "part")],
    )
    def test_a_package_whose_only_extension_it_does_without_runs_in_part(
        self, wheel: Write, environment: dict[str, str], old_abi: Path, caught: str, verdict: str
    ) -> None:
        """torchrl warns, and goes on without its replay buffers' extension."""
        init = (
            f"def start():\n    try:\n        from pack._C import f\n    except {caught}:\n        f = None\nstart()\n"
        )
        members = {"pack/__init__.py": init.encode(), "pack/_C.abi3.so": old_abi.read_bytes()}

        assert judged(wheel(members, HERE, requires=["torch"]), environment).verdict == verdict

    @pytest.mark.usefixtures("torch")
    def test_so_it_is_with_an_installed_package(
        self, install: Callable[..., Path], environment: dict[str, str], old_abi: Path
    ) -> None:
        place = install("pack", "1.0", old_abi, folder="lib")
        (place.parents[1] / "__init__.py").write_text("try:\n    from .lib import _C\nexcept ImportError:\n    pass\n")
        (place.parent / "__init__.py").write_text("")
        [info] = place.parents[2].glob("pack-*")
        files = ["pack/__init__.py", "pack/lib/__init__.py", "pack/lib/_C.so"]
        (info / "RECORD").write_text("".join(f"{f},,\n" for f in files))

        assert judged(place.parents[1], environment).verdict == "part"

    @pytest.mark.parametrize(
        ("text", "status"),
        [('NAMES = ("libdep.so.1",)', 0), ('glob("libdep.so.*")', 0), ('"libdepend.so.1"', 1), ("", 1)],
    )
    def test_a_library_that_is_loaded_by_its_path_serves_whoever_asks_for_its_soname(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], text: str, status: int
    ) -> None:
        """TensorRT's provider for onnxruntime loads its libtensorrt_rtx.so.1.7.1 first, and not its
        libcudart.so.12.9.79."""
        dep = build(tmp_path / "x/libdep.so.1.7", 'extern "C" int dep() { return 1; }', "-Wl,-soname,libdep.so.1")
        user = build(tmp_path / "built/_C.so", 'extern "C" int dep(); extern "C" int f() { return dep(); }', str(dep))
        members = {
            "pack/__init__.py": text.encode(),
            "pack/_C.so": user.read_bytes(),
            "pack/libdep.so.1.7": dep.read_bytes(),
        }

        assert judged(wheel(members, HERE), environment).exit_status() == status


class TestVersions:
    """Versions of symbols that the libraries here do not have."""

    def test_a_library_that_is_too_old_is_an_error(self, tmp_path: Path, environment: dict[str, str]) -> None:
        library = tmp_path / "libdep.so"
        for version in ("V2", "V1"):
            (tmp_path / "map").write_text(f"{version} {{ global: dep; local: *; }};")
            script = f"-Wl,--version-script={tmp_path}/map"
            build(library, 'extern "C" int dep() { return 1; }', script, "-Wl,-soname,libdep.so")
            if version == "V2":
                user = build(
                    tmp_path / "user.so", 'extern "C" int dep(); extern "C" int f() { return dep(); }', str(library),
                    "-Wl,-rpath,$ORIGIN",
                )  # fmt: skip
        assert "version `V2' not found" in ldd(user)

        report = judged(user, environment)

        assert grave(report)[0].what == f"needs version V2, which {library} does not have: the loader refuses it"
        assert report.exit_status() == 1

    def test_a_glibc_to_come_is_an_error(self, tmp_path: Path, environment: dict[str, str], wheel: Write) -> None:
        (tmp_path / "map").write_text("GLIBC_2.99 { global: future; local: *; };")
        libc = build(
            tmp_path / "libc.so.6", 'extern "C" int future() { return 1; }', "-Wl,-soname,libc.so.6", "-nostdlib",
            f"-Wl,--version-script={tmp_path}/map",
        )  # fmt: skip
        user = build(
            tmp_path / "built/user.so", 'extern "C" int future(); extern "C" int f() { return future(); }', "-nostdlib",
            str(libc),
        )  # fmt: skip
        assert "version `GLIBC_2.99' not found" in ldd(user)

        for path in (user, wheel({"pack/_C.so": user.read_bytes()}, HERE)):
            report = judged(path, environment)
            assert grave(report)[0].what.startswith("needs version GLIBC_2.99, which ")
            assert report.exit_status() == 1


class TestWhatAPackageBrings:
    """Libraries and symbols that are there because of a package, and those that are not."""

    USER = 'extern "C" int dep(); extern "C" int f() { return dep(); }'

    @pytest.fixture
    def user(self, tmp_path: Path) -> bytes:
        dep = build(tmp_path / "x/librmm.so", 'extern "C" int dep() { return 1; }', "-Wl,-soname,librmm.so")
        return build(tmp_path / "built/_C.so", self.USER, str(dep)).read_bytes()

    @pytest.mark.parametrize(
        ("requires", "status"),
        [
            ([], 1),
            (["librmm-cu12"], 0),
            (['librmm-cu12; extra == "gpu"'], 1),
            (['librmm-cu12; python_version < "3"'], 1),
            (['librmm-cu12; os_name ~= "posix"'], 0),
            (["librmm-cu12 @@ nonsense"], 1),
        ],
    )
    def test_a_requirement_brings_a_library_and_an_extra_does_not(
        self, wheel: Write, user: bytes, environment: dict[str, str], requires: list[str], status: int
    ) -> None:
        report = judged(wheel({"pack/_C.so": user}, HERE, requires=requires), environment)

        assert report.exit_status() == status, report.problems
        if "extra" in "".join(requires):
            assert "pip install 'pack[gpu]'" in grave(report)[0].remedy

    @pytest.mark.parametrize("requires", [["other-thing", "numpy"], ["other-thing[fast]"]])
    def test_a_library_that_an_absent_requirement_may_bring_is_not_called_missing(
        self, wheel: Write, user: bytes, environment: dict[str, str], requires: list[str]
    ) -> None:
        """rmm-cu12 needs librapids_logger.so, which a requirement of its requirement librmm-cu12 brings."""
        report = judged(wheel({"pack/_C.so": user}, HERE, requires=requires), environment, "H100")

        assert (report.verdict, report.exit_status(strict=True)) == ("none", 0), report.problems
        assert re.search(
            r"; it loads if (one of )?other-thing.*, not installed here, brings librmm\.so\.$", verdict_line(report)
        )
        [problem] = [p for p in report.problems if p.severity == "warning"]
        assert problem.what.startswith("librmm.so: may come with requirements that are not installed here: other-thing")

    @pytest.mark.parametrize(
        ("library", "requires", "remedy"),
        [
            ("libcublas.so.11", ["numpy", "protobuf"], "pip install nvidia-cublas-cu11, and put its folder"),
            (
                "libcudss.so.0",
                ["numpy"],
                "pip install nvidia-cudss-cu12 (or the one for your CUDA), and put its folder",
            ),
            ("libcublas.so.13", ["numpy"], "pip install nvidia-cublas, and put its folder"),
            ("libmpi.so.40", ["nvidia-cublas-cu12", "cuda-toolkit[nvrtc]", "numpy"], "install it"),
            ("libcurlx.so.4", ['libcurlx-cu12; extra == "net"', "numpy"], "pip install 'pack[net]'"),
            ("libcurl.so.9", [], "install it, or put the folder in"),
            ("libcusparse.so.9.0", [], "NVIDIA has no packages of CUDA 9.0's libraries: install its toolkit"),
            ("libcublas.so.10", [], "NVIDIA has no packages of CUDA 10's libraries"),
            ("libcusparse.so.11", [], "pip install nvidia-cusparse-cu12 (or the one for your CUDA)"),
        ],
    )
    def test_a_library_that_no_absent_requirement_can_bring_is_missing_and_the_remedy_names_its_package(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], library: str, requires: list[str], remedy: str
    ) -> None:
        """onnxruntime-training requires numpy and needs CUDA 11; nvidia-cudss-cu12 NVIDIA's packages, and needs MPI."""
        path = wheel({"pack/_C.so": self.user_of(tmp_path, library)}, HERE, requires=requires)

        [problem] = grave(judged(path, environment))

        assert problem.what.startswith(f"{library} is missing")
        assert remedy in problem.remedy

    def test_ffmpeg_is_awaited_from_the_system_and_not_from_a_requirement(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """torchcodec's plugins have builds for several versions of it."""
        path = wheel({"pack/_C.so": self.user_of(tmp_path, "libavutil.so.58")}, HERE, requires=["torchcodec"])

        assert judged(path, environment).condition == "FFmpeg, not installed here, brings libavutil.so.58"

    def test_an_extra_is_named_for_what_it_brings_alone(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libnccl.so.2", "libmpi.so.40")
        path = wheel({"pack/_C.so": data}, HERE, requires=['nvidia-nccl-cu12; extra == "nccl"'])

        [problem] = grave(judged(path, environment))

        assert problem.remedy.startswith("an extra brings libnccl.so.2: pip install 'pack[nccl]'; for libmpi.so.40: ")

    def test_a_plugin_awaits_the_package_that_it_is_named_after(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """OpenMM-CUDA-12, which openmm[cuda12] brings, requires NVIDIA's packages alone."""
        data = self.user_of(tmp_path, "libPackMore.so")
        path = wheel({"pack/_C.so": data}, HERE, project="Pack-CUDA-12", requires=["nvidia-cufft-cu12"])

        report = judged(path, environment)

        assert report.condition == "pack, not installed here, brings libPackMore.so"
        [problem] = [p for p in report.problems if "libPackMore.so" in p.what]
        assert problem.what == "libPackMore.so: may come with pack, which its metadata do not require"
        assert problem.remedy == "pip install pack, and verify again"

    def test_a_plugin_that_requires_nothing_awaits_it_too(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """OpenMM-HIP-6 is for AMD's GPUs, and names no requirement."""
        data = self.user_of(tmp_path, "libPack.so", "libamdhip64.so.6")

        report = judged(wheel({"Pack.libs/libPackHIP.so": data}, HERE, project="Pack-HIP-6"), environment, "H100")

        assert (report.verdict, report.exit_status()) == ("none", 0), report.problems
        assert report.condition == "pack, not installed here, brings libPack.so"

    def test_what_has_an_extension_module_is_no_plugin(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libpackmore.so")
        path = wheel({"pack/_C.abi3.so": data}, HERE, project="pack-gpu")

        assert judged(path, environment).exit_status() == 1

    def test_of_extras_for_several_versions_of_cuda_the_one_that_fits_is_named(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """cuda-cccl's exclude each other; minimal-cu12 alone brings both libraries."""
        data = self.user_of(tmp_path, "libnvrtc.so.13", "libnvJitLink.so.13")
        requires = [f'cuda-toolkit[nvjitlink,nvrtc]=={cuda}.*; extra == "minimal-cu{cuda}"' for cuda in (12, 13)] + [
            'nvidia-nvjitlink-cu12; extra == "sysctk12"'
        ]

        [problem] = grave(judged(wheel({"pack/_C.so": data}, HERE, requires=requires), environment))

        assert problem.remedy == "an extra brings them: pip install 'pack[minimal-cu13]'"

    def user_of(self, folder: Path, *names: str) -> bytes:
        """A library that needs these, which are not there."""
        needed = [build(folder / f"x/{name}", "", f"-Wl,-soname,{name}") for name in names]
        return build(folder / "built/_C.so", "", "-Wl,--no-as-needed", *map(str, needed)).read_bytes()

    @pytest.mark.parametrize(
        ("library", "requires", "said"),
        [
            ("libcudnn.so.8", ["graphviz"], "graphviz"),
            ("libcudart.so.12", ["itk==5.4.*", "nvidia-ml-py", "numpy"], "itk, nvidia-ml-py"),
            ("libcusolver.so.11", ["cutensor-cu12", "cutensornet-cu12"], "cutensor-cu12, cutensornet-cu12"),
            ("libcudart.so.12", ["cupy-cuda12x", "numpy"], "cupy-cuda12x"),
            ("libnvrtc.so.12", ["nvidia-cublas-cu12==12.8.4.1"], "nvidia-cublas-cu12"),
            ("libnvrtc.so.12", ["nvidia-cublas-cu12>=12.5,<12.8"], "nvidia-cublas-cu12"),
            ("libnvrtc.so.13", ["nvidia-cublas~=13.0.0"], "nvidia-cublas"),
            ("libnvrtc.so.13", ["nvidia-cublas==13.2.0.9"], "nvidia-cublas"),
        ],
    )
    def test_nvidias_libraries_are_not_awaited_from_who_cannot_bring_them(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], library: str, requires: list[str], said: str
    ) -> None:
        """After the requirements of mxnet, ITK's CUDA modules and cudensitymat were installed, they still failed.
        cupy brings CUDA's libraries only with its extra, and only newer cuBLAS brings NVRTC."""
        path = wheel({"pack/_C.so": self.user_of(tmp_path, library)}, HERE, requires=requires)

        report = judged(path, environment)

        assert (report.verdict, report.exit_status()) == ("no", 1)
        assert grave(report)[0].what.startswith(f"{library} is missing")
        assert f"{said}: not installed here, and assumed to bring none of NVIDIA's libraries" in {
            p.what for p in report.problems
        }

    @pytest.mark.parametrize(
        ("library", "requires"),
        [
            ("libcublas.so.12", ["nvidia-cudnn-cu12"]),
            ("libnvJitLink.so.13", ["cuda-toolkit[cusparse]"]),
            ("libcudart.so.12", ["jax-cuda12-plugin"]),
            ("libcudart.so.12", ["xformers"]),
            ("libcustatevec.so.1", ["cuquantum-cu11"]),
            ("libcudart.so.12", ["nvidia-something-new-cu12"]),
            ("libcudart.so.12", ["cupy-cuda12x[ctk]"]),
            ("libcudart.so.12", ["cuda-quantum-cu12>=0.16,<0.17"]),
            ("libcudart.so.12", ["cuda-quantum-cu12", 'tensorrt-cu12; extra == "trt"']),
            ("libnvrtc.so.12", ["nvidia-cublas-cu12>=12.5.0"]),
            ("libnvrtc.so.12", ["nvidia-cublas-cu12==12.9.3.*"]),
            ("libnvrtc.so.12", ["nvidia-cublas-cu12>12.5,<12.9"]),
            ("libnvrtc.so.13", ["nvidia-cublas<14"]),
            ("libnvrtc.so.13", ["nvidia-cublas==13.1.2.11"]),
            ("libnccl.so.2", ["nvidia-cublasmp-cu12"]),
            ("libcublas.so.12", ["nvidia-cusolvermp-cu12"]),
        ],
    )
    def test_they_are_awaited_from_who_requires_them(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], library: str, requires: list[str]
    ) -> None:
        path = wheel({"pack/_C.so": self.user_of(tmp_path, library)}, HERE, requires=requires)

        assert judged(path, environment).exit_status() == 0

    def test_torch_brings_no_library_but_its_own_and_its_vendors(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        path = wheel({"pack/_C.so": self.user_of(tmp_path, "libodd.so.3")}, HERE, requires=["torch==2.14.*", "numpy"])

        report = judged(path, environment)

        assert (report.verdict, report.condition) == ("no", "")
        assert grave(report)[0].what.startswith("libodd.so.3 is missing")

    @pytest.mark.parametrize("there", [False, True])
    def test_libraries_of_the_system_are_awaited_from_no_requirement(
        self,
        tmp_path: Path,
        wheel: Write,
        install: Callable[..., Path],
        environment: dict[str, str],
        there: bool,
    ) -> None:
        """PySide's plugins need Wayland's and databases' libraries: whether shiboken6 is installed changes nothing."""
        other = build(tmp_path / "y/libother6.abi3.so.6.1", "", "-Wl,-soname,libother6.abi3.so.6.1")
        linked = "-Wl,--no-as-needed"
        core = build(tmp_path / "built/core.abi3.so", "", linked, str(other)).read_bytes()
        plugin = self.user_of(tmp_path, "libwayland-none.so.0", "libmysqlclient.so.99")
        if there:
            install("other6", "1.0", other)
        members = {"pack/core.abi3.so": core, "pack/plugins/libplugin.so": plugin}

        report = judged(wheel(members, HERE, requires=["other6"]), environment, "H100")

        assert (report.verdict, report.exit_status(), report.condition) == ("part", 0, "")
        [problem] = [p for p in report.problems if "missing" in p.what]
        assert (problem.severity, problem.file.rpartition("/")[2]) == ("warning", "libplugin.so")
        assert problem.what.startswith("libwayland-none.so.0, libmysqlclient.so.99 are missing")
        assert problem.remedy == "install them with the system's package manager (apt, dnf)"

    def test_a_librarys_own_name_counts_with_its_number(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libshiboken6.abi3.so.6.12")

        report = judged(wheel({"pack/_C.so": data}, HERE, requires=["shiboken6==6.12"]), environment)

        assert (report.exit_status(), report.condition) == (0, "")
        assert any(p.what.startswith("libshiboken6.abi3.so.6.12: shiboken6 brings it") for p in report.problems)

    def test_the_remedy_parts_the_systems_libraries_from_others(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libwayland-none.so.0", "libodd.so.3")

        [problem] = grave(judged(wheel({"pack/_C.so": data}, HERE), environment))

        assert problem.remedy == (
            "install libwayland-none.so.0 with the system's package manager (apt, dnf); install libodd.so.3, or put "
            "the folder in the RPATH or in LD_LIBRARY_PATH"
        )

    @pytest.mark.parametrize("version", ["1.14.0-beta.1", "2.0+local"])
    def test_a_bundled_library_with_a_suffix_after_its_version_is_there(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], version: str
    ) -> None:
        """nixl bundles Azure's libraries, whose versions are beta ones."""
        name = f"libazure-core-a1893739.so.{version}"
        needed = build(tmp_path / "x" / name, "", f"-Wl,-soname,{name}")
        rpath = "-Wl,--no-as-needed,-rpath,$ORIGIN/../pack.libs"
        user = build(tmp_path / "built/_C.so", "", rpath, str(needed))
        members = {"pack/_C.so": user.read_bytes(), f"pack.libs/{name}": needed.read_bytes()}

        report = judged(wheel(members, HERE), environment)

        assert grave(report) == []
        assert [f.path.rpartition("/")[2] for f in report.files] == ["_C.so", name]

    @pytest.mark.parametrize("name", ["libhwloc.so.15", "libcuobjclient.so.1", "libmpi.so.40"])
    def test_it_does_not_bring_what_no_package_has(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], name: str
    ) -> None:
        """nixl's plugins need hwloc and cuObject; only torch for Intel's GPUs brings an hwloc."""
        path = wheel({"pack/_C.so": self.user_of(tmp_path, "libc10.so", name)}, HERE, requires=["torch"])

        report = judged(path, environment)

        assert (report.verdict, report.condition) == ("no", "")
        assert grave(report)[0].what.startswith(f"{name} is missing")

    def test_torch_for_intels_gpus_brings_more_of_intels(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libsycl.so.8", "libhwloc.so.15")

        report = judged(wheel({"pack/_C.so": data}, HERE, requires=["torch"]), environment)

        assert report.condition == "torch, not installed here, brings libsycl.so.8, libhwloc.so.15"

    def test_the_driver_and_not_torch_brings_the_drivers_libraries(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libcuda.so.1", "libnvidia-ml.so.1", "libcublas.so.11")

        report = judged(wheel({"pack/_C.so": data}, HERE, requires=["torch"]), environment)

        assert [p.what for p in report.problems if " bring" in p.what] == [
            "libcuda.so.1, libnvidia-ml.so.1: the NVIDIA driver brings them",
            "libcublas.so.11: torch brings it, and must be imported first; none that fits is installed here",
        ]

    @pytest.mark.parametrize("library", ["libc10_hip.so", "libomp.so", "libsycl.so.8", "libcaffe2_nvrtc.so"])
    def test_it_brings_what_some_build_of_it_has(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], library: str
    ) -> None:
        path = wheel({"pack/_C.so": self.user_of(tmp_path, library)}, HERE, requires=["torch"])

        assert judged(path, environment).condition == f"torch, not installed here, brings {library}"

    def test_libraries_of_huaweis_toolkit_are_the_systems_as_rocms_are(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """torch_npu: no package has them."""
        path = wheel({"pack/_C.so": self.user_of(tmp_path, "libhccl.so", "libascendcl.so")}, HERE, requires=["torch"])

        report = judged(path, environment)

        assert (report.exit_status(), report.condition) == (0, "")
        assert [p.what for p in report.problems if "CANN" in p.what] == ["libhccl.so, libascendcl.so: CANN brings them"]

    def test_what_an_extra_requires_counts_where_it_is_installed(
        self, tmp_path: Path, wheel: Write, user: bytes, install: Callable[..., Path], environment: dict[str, str]
    ) -> None:
        """onnxruntime-gpu[cuda]: whether somebody asked for the extra is written nowhere."""
        path = wheel({"pack/_C.so": user}, HERE, requires=['librmm-cu12; extra == "gpu"'])
        install("librmm-cu12", "1.0", tmp_path / "x/librmm.so")

        assert grave(judged(path, environment)) == []

    def test_an_extra_that_is_installed_is_no_remedy(
        self, tmp_path: Path, wheel: Write, cc: Compile, install: Callable[..., Path], environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libcublas.so.13", "libcurand.so.10")
        install("nvidia-curand", "1.0", cc("libcurand.so.9"))
        path = wheel({"pack/_C.so": data}, HERE, requires=['nvidia-curand; extra == "cuda"'])

        [problem] = grave(judged(path, environment))

        assert problem.remedy == (
            "pip install nvidia-cublas nvidia-curand, and put their folders in the RPATH or in LD_LIBRARY_PATH"
        )

    def test_an_extra_brings_what_its_packages_require(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """nvidia-cudnn-cu13, of onnxruntime-gpu[cudnn], requires nvidia-cublas. TensorRT comes in packages too."""
        data = self.user_of(tmp_path, "libcublas.so.13", "libnvinfer.so.10", "libodd.so.3")
        path = wheel({"pack/_C.so": data}, HERE, requires=['nvidia-cudnn-cu13; extra == "cudnn"'])

        [problem] = grave(judged(path, environment))

        assert problem.remedy == (
            "an extra brings libcublas.so.13: pip install 'pack[cudnn]'; for libnvinfer.so.10, libodd.so.3: pip "
            "install 'tensorrt-cu13==10.*', and put its folder in the RPATH or in LD_LIBRARY_PATH; install libodd.so.3"
            ", or put the folder in the RPATH or in LD_LIBRARY_PATH"
        )

    def test_a_runpath_that_leads_to_nvidias_folder_needs_no_other(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        needed = build(tmp_path / "x/libcurand.so.10", "", "-Wl,-soname,libcurand.so.10")
        rpath = "-Wl,--no-as-needed,-rpath,$ORIGIN/../nvidia/curand/lib"
        data = build(tmp_path / "built/_C.so", "", rpath, str(needed)).read_bytes()

        [problem] = grave(judged(wheel({"pack/_C.so": data}, HERE), environment))

        assert problem.remedy == "pip install nvidia-curand-cu12 (or the one for your CUDA)"

    @pytest.mark.usefixtures("torch")
    def test_an_extension_for_another_build_of_torch_is_told_which_one_to_install(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libtorch_cuda.so", "libc10.so", "libcudart.so.12")

        [problem] = grave(judged(wheel({"pack/_C.so": data}, HERE, requires=["torch"]), environment))

        assert problem.what.startswith("libtorch_cuda.so, libcudart.so.12 are missing; looked in ")
        assert problem.what.endswith("; the torch here (2.15.0) is for CPUs")
        assert problem.remedy == "install a torch for CUDA 12"

    @pytest.mark.usefixtures("torch")
    def test_so_is_one_that_is_linked_with_nothing_else_of_torch(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        data = self.user_of(tmp_path, "libtorch_cuda.so")

        [problem] = grave(judged(wheel({"pack/_C.so": data}, HERE, requires=["torch"]), environment))

        assert problem.remedy == "install a torch for CUDA"

    @pytest.mark.usefixtures("torch")
    def test_of_builds_for_several_versions_of_cuda_none_is_favoured(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str]
    ) -> None:
        """fussim has five, and beside a torch for CPUs a torch for CUDA 11 was the advice even for a B200."""
        members = {
            f"pack/_cuda_cu{cuda}.abi3.so": self.user_of(
                tmp_path, "libc10.so", "libc10_cuda.so", f"libcudart.so.{cuda // 10}"
            )
            for cuda in (118, 128, 130)
        }

        problems = grave(judged(wheel(members, HERE, requires=["torch"]), environment))

        assert {p.remedy for p in problems} == {
            "install a torch for CUDA 11, 12 or 13, the one whose build here has code for the GPU"
        }

    @pytest.mark.parametrize(
        ("requires", "condition"),
        [
            (["numpy"], "a torch for CUDA 13, which its metadata do not require, is installed"),
            (["torch>=2.5"], ""),
            (["xformers"], ""),
        ],
    )
    def test_a_torch_that_is_needed_and_not_required_is_a_condition(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], requires: list[str], condition: str
    ) -> None:
        """mslk-cuda requires numpy alone, and importing it fails without torch."""
        data = self.user_of(tmp_path, "libc10_cuda.so", "libcudart.so.13")

        report = judged(wheel({"pack/_C.abi3.so": data}, HERE, requires=requires), environment)

        assert (report.exit_status(), report.condition) == (0, condition)

    @pytest.mark.parametrize(
        ("name", "needed", "warned"),
        [
            ("pack.libs/libcuda-9e10c86a.so.570.211.01", "libcuda-9e10c86a.so.570.211.01", True),
            ("pack/libcuda.so.1", "libcuda.so.1", True),
            ("pack/stubs/libcuda.so", "libcuda.so.1", False),
            ("pack/stubs/libcuda.so.1", "libcuda.so.1", False),
            ("pack/libcudart.so.12", "libcudart.so.12", False),
        ],
    )
    def test_a_library_of_the_driver_in_the_package_is_a_warning(
        self, tmp_path: Path, wheel: Write, environment: dict[str, str], name: str, needed: str, warned: bool
    ) -> None:
        """fastvideo-kernel has the driver's own, which auditwheel took for a library like others."""
        user = self.user_of(tmp_path, needed)
        members = {"pack/_C.abi3.so": user, name: (tmp_path / "x" / needed).read_bytes()}

        problems = judged(wheel(members, HERE), environment).problems

        found = [p for p in problems if "a library of NVIDIA's driver, and _C.abi3.so loads it" in p.what]
        assert [(p.file.rpartition("::")[2], p.severity) for p in found] == [(name, "warning")] * warned

    def test_the_extra_of_an_installed_package_is_that_of_its_distribution(
        self, tmp_path: Path, install: Callable[..., Path], environment: dict[str, str]
    ) -> None:
        """onnxruntime-gpu is imported as onnxruntime, which is another distribution."""
        data = self.user_of(tmp_path, "libodd.so.3")
        (tmp_path / "built/_D.so").write_bytes(data)
        place = install("pack-gpu", "1.0", tmp_path / "built/_D.so")
        info = next(place.parents[2].glob("pack_gpu-*"))
        (info / "METADATA").write_text('Name: pack-gpu\nVersion: 1.0\nRequires-Dist: libodd; extra == "more"\n')
        place.parents[1].rename(place.parents[2] / "pack")
        (info / "RECORD").write_text("pack/lib/_D.so,,\n")

        [problem] = grave(judged(place.parents[2] / "pack", environment))

        assert "pip install 'pack-gpu[more]'" in problem.remedy

    def test_with_every_requirement_installed_what_none_of_them_has_is_missing(
        self, wheel: Write, user: bytes, cc: Compile, install: Callable[..., Path], environment: dict[str, str]
    ) -> None:
        path = wheel({"pack/_C.so": user}, HERE, requires=["other-thing"])
        install("other-thing", "1.0", cc("libother.so"))

        [problem] = grave(judged(path, environment))

        assert problem.what.startswith("librmm.so is missing")

    def test_device_code_that_awaits_a_library_runs_if_it_comes(
        self, tmp_path: Path, wheel: Write, nvcc: Compile, environment: dict[str, str]
    ) -> None:
        dep = build(tmp_path / "x/librmm.so", 'extern "C" int dep() { return 1; }', "-Wl,-soname,librmm.so")
        plain = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-arch=sm_90"]
        code = nvcc("awaiting.so", *plain, "-Xlinker", f"--no-as-needed,{dep}")

        report = judged(wheel({"pack/_C.so": code.read_bytes()}, HERE, requires=["other-thing"]), environment, "H100")

        assert report.exit_status() == 0, report.problems
        assert verdict_line(report) == "All of it will run, if other-thing, not installed here, brings librmm.so."

    def test_an_installed_requirement_is_looked_into(
        self, tmp_path: Path, wheel: Write, user: bytes, install: Callable[..., Path], environment: dict[str, str]
    ) -> None:
        path = wheel({"pack/_C.so": user}, HERE, requires=["librmm-cu12"])
        install("librmm-cu12", "1.0", build(tmp_path / "y/librmm.so", 'extern "C" int other() { return 1; }'))

        [problem] = grave(judged(path, environment))

        assert problem.what == "undefined symbol: dep: the loader refuses it"

    def test_torchs_c_interface_is_looked_for_in_a_process_that_has_torch(
        self, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        """cuda-core's _tensor_bridge uses it, is linked with nothing of torch and does not require it."""
        source = "int aoti_torch_device_type_cuda(void); int f(void) { return aoti_torch_device_type_cuda(); }"

        report = judged(wheel({"pack/_C.so": cc("bridge.so", source).read_bytes()}, HERE), environment)

        assert (report.verdict, grave(report)) == ("none", [])

    def test_a_symbol_of_another_library_of_the_package_counts(
        self, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        """onnxruntime loads the library that defines Provider_GetHost before the ones that use it."""
        plugin = cc("plugin.so", "int host(void); int f(void) { return host(); }").read_bytes()
        assert judged(wheel({"pack/plugin.so": plugin}, HERE), environment).exit_status() == 1
        host = cc("host.so", "int host(void) { return 1; }").read_bytes()

        assert grave(judged(wheel({"pack/plugin.so": plugin, "pack/host.so": host}, HERE), environment)) == []

    def test_an_extension_without_its_library_is_said_in_part_of_a_package_whose_others_load(
        self, wheel: Write, cc: Compile, user: bytes, environment: dict[str, str]
    ) -> None:
        name = ".abi3.so"
        members = {f"pack/_C{name}": user, f"pack/_D{name}": cc("d.so").read_bytes()}

        report = judged(wheel(members, HERE), environment)

        assert (report.verdict, report.exit_status(), report.exit_status(strict=True)) == ("part", 0, 1)
        assert {f.path.rpartition("/")[2]: f.loads for f in report.files} == {f"_C{name}": False, f"_D{name}": True}

    def test_a_library_that_could_not_be_read_is_not_called_missing(
        self, wheel: Write, cc: Compile, nvcc: Compile, environment: dict[str, str]
    ) -> None:
        dep = cc("libdep.so", "int dep(void) { return 1; }", "-Wl,-soname,libdep.so")
        plain = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-arch=sm_90"]
        code = nvcc("on_dep.so", *plain, "-Xlinker", f"--no-as-needed,{dep},-rpath,$ORIGIN")
        members = {"pack/_C.so": code.read_bytes(), "pack/libdep.so": dep.read_bytes()[:9000]}

        report = judged(wheel(members, HERE), environment, "H100")

        assert [p.what for p in report.problems if "missing" in p.what] == []
        assert (report.verdict, report.devices[0].verdict, report.exit_status()) == ("unread", "native", 2)

    def test_the_reason_is_the_file_that_does_not_load_and_not_another_ones_promise(
        self, wheel: Write, cc: Compile, user: bytes, environment: dict[str, str]
    ) -> None:
        """The tag's promise is about other systems: this one's loader has every version that is needed."""
        newer = cc("n.so", "#include <pthread.h>\nint f(void) { return pthread_join(0, 0); }").read_bytes()
        members = {"pack/_A.abi3.so": newer, "pack/_C.abi3.so": user}

        report = judged(wheel(members, f"pack-1.0-{TAG}-{TAG}-manylinux_2_17_x86_64.whl"), environment)

        assert (report.verdict, {p.severity for p in report.problems if "promises" in p.what}) == ("part", {"info"})
        assert verdict_line(report).startswith("It will run in part: _C.abi3.so: librmm.so is missing")

    def test_device_code_among_a_packages_tests_is_not_judged(
        self, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        """numba's tests/data/jitlink.ptx is for sm_50 and says nothing about numba."""
        ptx = b".version 9.9\n.target sm_120a\n.address_size 64\n"
        members = {"pack/_C.so": cc("c.so").read_bytes(), "pack/cuda/tests/data/jitlink.ptx": ptx}

        report = judged(wheel(members, HERE), environment, "H100")

        assert (report.verdict, report.exit_status()) == ("none", 0)
        assert report.about == "CPU code for x86_64 in _C.so"

    def test_a_static_library_of_host_code_in_a_package_is_host_code(
        self, tmp_path: Path, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        """torch_npu has libtensorpipe_uv.a, in which there is no device code to link with."""
        source, archive = tmp_path / "u.c", tmp_path / "libu.a"
        source.write_text("int u(void) { return 1; }")
        subprocess.run(["gcc", "-c", str(source), "-o", str(tmp_path / "u.o")], check=True)
        subprocess.run(["ar", "rcs", str(archive), str(tmp_path / "u.o")], check=True)
        members = {"pack/_C.so": cc("c.so").read_bytes(), "pack/libu.a": archive.read_bytes()}

        report = judged(wheel(members, HERE), environment)

        assert report.about == "CPU code for x86_64 in _C.so, libu.a"

    def test_device_code_among_sources_is_not_judged(self, wheel: Write, environment: dict[str, str]) -> None:
        """flashinfer-python compiles when it runs; four files of PTX in csrc are for one GPU alone."""
        ptx = b".version 9.2\n.target sm_103a\n.address_size 64\n"

        report = judged(wheel({"pack/data/csrc/kda/ptx/fixed.ptx": ptx}, HERE), environment, "H100")

        assert (report.verdict, report.about) == ("none", "pure Python, without any binary")

    def test_an_absent_requirement_is_named_once_with_its_extras(
        self, wheel: Write, user: bytes, environment: dict[str, str]
    ) -> None:
        report = judged(wheel({"pack/_C.so": user}, HERE, requires=["other-thing[fast,loud]"]), environment)

        assert report.condition == "other-thing[fast,loud], not installed here, brings librmm.so"

    def test_an_extra_of_an_absent_requirement_brings_its_library(
        self, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        """torch 2.15 requires cuda-toolkit[cublas,cudart,...], whose extras are NVIDIA's packages."""
        dep = cc("libcublas.so.13", "int dep(void) { return 1; }", "-Wl,-soname,libcublas.so.13")
        code = cc("_C.so", "int dep(void); int f(void) { return dep(); }", str(dep)).read_bytes()

        report = judged(wheel({"pack/_C.so": code}, HERE, requires=["cuda-toolkit[cublas]"]), environment)

        assert any(p.what.startswith("libcublas.so.13: cuda-toolkit[cublas] brings it") for p in report.problems)

    def test_one_of_several_builds_of_a_library_is_enough(
        self, wheel: Write, cc: Compile, user: bytes, environment: dict[str, str]
    ) -> None:
        members = {"pack/libx_cuda118.so": user, "pack/libx_cpu.so": cc("d.so").read_bytes()}

        report = judged(wheel(members, HERE), environment)

        assert (report.verdict, {p.severity for p in report.problems}) == ("none", {"info"})

    def test_so_is_one_of_several_builds_in_folders_named_after_torchs_versions(
        self, wheel: Write, cc: Compile, user: bytes, environment: dict[str, str]
    ) -> None:
        """vesin-torch has twelve."""
        folders = [f"pack/torch-{version}/lib" for version in ("2.9", "2.13", "2.14")]
        members = {f"{folder}/libx.so": user for folder in folders} | {f"{folders[1]}/libx.so": cc("d.so").read_bytes()}

        report = judged(wheel(members, HERE), environment)

        assert (report.verdict, {p.severity for p in report.problems}) == ("none", {"info"})

    def test_many_that_lack_a_library_are_one_line(self, wheel: Write, user: bytes, tmp_path: Path) -> None:
        from stoker.show.report_text import render

        report = judged(wheel({f"pack/_{n}.so": user for n in "abcdefgh"}, HERE), {})

        assert sum(line.startswith("ERROR") for line in render(report).splitlines()) == 1


class TestTheHost:
    """Machine, Python and system belong to the verdict."""

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("pack-1.0-cp26-cp26m-linux_x86_64.whl", "is for cp26-cp26m; the Python here is CPython"),
            (f"pack-1.0-{TAG}-{TAG}-manylinux_2_99_x86_64.whl", "is for manylinux_2_99_x86_64; this machine is x86_64"),
            (f"pack-1.0-{TAG}-{TAG}-musllinux_1_2_x86_64.whl", "is for musllinux_1_2_x86_64; this machine is"),
        ],
    )
    def test_a_wheel_that_pip_refuses_here_will_not_run(
        self, wheel: Write, cc: Compile, environment: dict[str, str], name: str, words: str
    ) -> None:
        report = judged(wheel({"pack/_C.so": cc("c.so").read_bytes()}, name), environment, "H100")

        assert grave(report)[0].what.startswith(words)
        assert (report.verdict, [d.verdict for d in report.devices], report.exit_status()) == ("no", ["no"], 1)

    def test_extensions_for_another_python_are_refused_whatever_the_wheel_is_tagged(
        self, wheel: Write, cc: Compile, environment: dict[str, str]
    ) -> None:
        members = {"pack/_C.cpython-39-x86_64-linux-gnu.so": cc("c.so").read_bytes()}

        report = judged(wheel(members, "pack-1.0-py3-none-linux_x86_64.whl"), environment)

        assert "its extension modules are for cpython-39" in grave(report)[0].what

    @pytest.mark.parametrize(
        ("device", "verdict"), [("H100", "none"), ("GH200", "no"), ("GB10", "no"), ("8.7", "no"), ("Jetson Orin", "no")]
    )
    def test_a_gpu_that_comes_with_one_processor_alone_implies_it(
        self, wheel: Write, cc: Compile, environment: dict[str, str], device: str, verdict: str
    ) -> None:
        path = wheel({"pack/_C.so": cc("c.so").read_bytes()}, HERE)

        report = judged(path, environment, device)

        assert report.verdict == verdict
        if verdict == "no":
            assert "is in a machine with aarch64" in grave(report)[0].what

    @pytest.mark.parametrize(("device", "status"), [("GH200", 0), ("H100", 1)])
    def test_what_is_for_arm_runs_where_the_gpu_is_beside_arm(
        self, wheel: Write, cc: Compile, environment: dict[str, str], device: str, status: int
    ) -> None:
        data = bytearray(cc("c.so").read_bytes())
        data[18:20] = (183).to_bytes(2, "little")

        path = wheel({"pack/_C.so": bytes(data)}, f"pack-1.0-{TAG}-{TAG}-manylinux_2_28_aarch64.whl")

        assert judged(path, environment, device).exit_status() == status

    def test_a_library_for_musl_is_said_to_be_one(self, cc: Compile, environment: dict[str, str]) -> None:
        libc = cc("libc.musl-x86_64.so.1", "int dep(void) { return 1; }", "-Wl,-soname,libc.musl-x86_64.so.1")
        code = cc("x.so", "int dep(void); int f(void) { return dep(); }", str(libc))
        libc.unlink()

        [problem] = grave(judged(code, environment))

        assert problem.what == "is built for musl, the C library of Alpine Linux; this machine has glibc"

    @pytest.mark.parametrize(("name", "severity"), [("_C.so", "warning"), ("libnvrtc.so.12", "info")])
    def test_an_empty_search_path_is_called_what_it_is(
        self, wheel: Write, cc: Compile, environment: dict[str, str], name: str, severity: str
    ) -> None:
        """NVIDIA's libnvrtc.so.12 has one, and only NVIDIA can mend it."""
        member = cc(name, "int f(void) { return 1; }", "-Wl,-rpath,$ORIGIN:").read_bytes()

        [problem] = [
            p for p in judged(wheel({f"pack/{name}": member}, HERE), environment).problems if "RUNPATH" in p.what
        ]
        assert problem.what.startswith("its RUNPATH has an empty entry: ")
        assert problem.severity == severity

    @pytest.mark.parametrize(("name", "noted"), [("x.cpython-311-x86_64-linux-gnu.so", True), ("libx.so", False)])
    def test_an_extension_module_says_of_itself_what_a_wheel_with_it_would(
        self, wheel: Write, cc: Compile, environment: dict[str, str], tmp_path: Path, name: str, noted: bool
    ) -> None:
        """A build's own folder is there, so the file loads; on no other machine will it be."""
        module = cc(name, "int f(void) { return 1; }", f"-Wl,-rpath,{tmp_path}")

        alone = [p for p in judged(module, environment).problems if "RUNPATH" in p.what]
        in_wheel = judged(wheel({f"pack/{name}": module.read_bytes()}, HERE), environment).problems

        assert [(p.severity, str(tmp_path) in p.what) for p in alone] == [("info", True)] * noted
        assert any(p.severity == "warning" and str(tmp_path) in p.what for p in in_wheel)


class TestOtherCode:
    """No code for NVIDIA's GPUs is no fault; it is said what there is instead."""

    def test_code_for_intels_gpus_is_named(self, cc: Compile, environment: dict[str, str]) -> None:
        source = '__asm__(".section .tgtimg,\\"a\\"\\n.quad 0\\n.text");'

        assert judged(cc("xpu.so", source), environment).about == "SYCL code for Intel's GPUs in xpu.so"

    def test_code_for_amds_gpus_is_named_with_its_targets(
        self, cc: Compile, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        ids = [b"host-x86_64-unknown-linux--", b"hipv4-amdgcn-amd-amdhsa--gfx90a", b"hipv4-amdgcn-amd-amdhsa--gfx942"]
        entries = b"".join(
            (4096 + 16 * i).to_bytes(8, "little") + (16).to_bytes(8, "little") + len(t).to_bytes(8, "little") + t
            for i, t in enumerate(ids)
        )
        bundle = (b"__CLANG_OFFLOAD_BUNDLE__" + len(ids).to_bytes(8, "little") + entries).ljust(8192, b"\0")
        (tmp_path / "bundle").write_bytes(bundle * 2)
        path = cc("libhip.so")
        subprocess.run(
            ["objcopy", f"--add-section=.hip_fatbin={tmp_path}/bundle", str(path)], check=True, capture_output=True
        )

        report = judged(path, environment, "H100")

        assert (report.verdict, report.exit_status()) == ("none", 0)
        assert report.about == "ROCm code for AMD's GPUs: gfx90a, gfx942"
        assert report.files[0].other == {"gfx90a": 2, "gfx942": 2}

    def test_binaries_of_windows_and_macos_are_named(self, wheel: Write, environment: dict[str, str]) -> None:
        mach = b"\xcf\xfa\xed\xfe" + (0x0100000C).to_bytes(4, "little") + bytes(64)

        windows = judged(wheel({"pack/_C.pyd": portable({})}, "pack-1.0-cp311-cp311-win_amd64.whl"), environment)
        apple = judged(wheel({"pack/_C.so": mach}, "pack-1.0-cp311-cp311-macosx_11_0_arm64.whl"), environment)

        assert [r.about for r in (windows, apple)] == [
            "CPU code for Windows x86_64 in _C.pyd", "CPU code for macOS aarch64 in _C.so",
        ]  # fmt: skip
        assert [r.exit_status() for r in (windows, apple)] == [0, 0]
        assert [r.condition for r in (windows, apple)] == ["it is installed on Windows", "it is installed on macOS"]

    def test_device_code_in_a_binary_of_windows_is_read(
        self, wheel: Write, nvcc: Compile, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        built = nvcc(
            "command.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_80,code=[sm_80,compute_80]"
        )
        subprocess.run(
            ["objcopy", "-O", "binary", "--only-section=.nv_fatbin", "--set-section-flags", ".nv_fatbin=alloc",
             str(built), str(tmp_path / "code")], check=True, capture_output=True,
        )  # fmt: skip
        sections = {b".text": b"x" * 100, b".nv_fatb": (tmp_path / "code").read_bytes()}
        data = portable(sections, (b"KERNEL32.dll", b"cudart64_12.dll"))
        path = wheel({"pack/_C.pyd": data}, "pack-1.0-cp311-cp311-win_amd64.whl")

        report = judged(path, environment, "A100", "V100", "GB10")

        assert [d.verdict for d in report.devices] == ["native", "no", "no"], "GB10 is beside ARM cores"
        assert any("is for Windows" in p.what for p in report.problems)
        assert report.files[0].needed == ("KERNEL32.dll", "cudart64_12.dll")


PLACE = 1 << 20
"""Bytes from one section's address to the next one's."""


def portable(sections: dict[bytes, bytes], imports: Sequence[bytes] = ()) -> bytes:
    """A PE file with these sections and imported DLLs, and no more than a reader of these looks at."""
    names = b"".join(dll + b"\0" for dll in imports)
    first = PLACE * (len(sections) + 1) + 20 * (len(imports) + 1)
    places = [first + names.index(dll) for dll in imports]
    records = b"".join(struct.pack("<IIIII", 1, 0, 0, place, 1) for place in places) + bytes(20)
    everything = {**sections, b".idata": records + names}
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 64)
    coff = b"PE\0\0" + struct.pack("<HH12xHH", 0x8664, len(everything), 240, 0)
    optional = struct.pack("<H110x", 0x20B) + struct.pack("<QII112x", 0, PLACE * len(everything), len(records))
    place = len(head) + len(coff) + 240 + 40 * len(everything)
    table = body = b""
    for number, (name, data) in enumerate(everything.items(), 1):
        table += struct.pack("<8sIIII16x", name, len(data), PLACE * number, len(data), place + len(body))
        body += data
    return head + coff + optional + table + body


def symbols_of(path: Path) -> Symbols:
    with FileSource(path) as source:
        symbols = read_symbols(source, read_elf(source))
    assert symbols is not None
    return symbols


def test_symbols_are_read_as_readelf_prints_them(cc: Compile) -> None:
    """Of the C++ runtime: thousands of symbols in dozens of versions."""
    path = Path(
        subprocess.run(["gcc", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True).stdout.strip()
    )
    printed = subprocess.run(
        ["readelf", "-W", "--dyn-syms", str(path)], capture_output=True, text=True, check=True
    ).stdout
    row = r"^\s*\d+: \S+ +\d+ +\S+ +(GLOBAL|WEAK|UNIQUE) +\S+ +(\S+) (\S+?)(@@?)?(?:(?<=@)(\S+))?(?: \(\d+\))?$"
    rows = re.findall(row, printed, re.MULTILINE)
    symbols = symbols_of(path)

    needed = {(n, v) for bind, where, n, _, v in rows if where == "UND" and bind != "WEAK"}
    assert {(s.name.decode(), s.version.decode()) for s in symbols.needed} == needed
    offered = [NeededSymbol(n.encode(), v.encode()) for _, where, n, _, v in rows if where not in ("UND", "ABS")]
    assert len(offered) > 1000
    assert all(map(symbols.offers, offered))
    assert not symbols.offers(NeededSymbol(offered[0].name, b"GLIBCXX_9.9"))
    assert not symbols.offers(NeededSymbol(b"no_such_symbol", b""))


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_symbols_are_found_by_either_hash_table(cc: Compile, style: str) -> None:
    """Names are compared by the hashes of .gnu.hash, which not every file has."""
    source = '#include <stdio.h>\nint first(void) { return puts("x"); }\nint second(void) { return 2; }'
    symbols = symbols_of(cc("x.so", source, f"-Wl,--hash-style={style}"))

    assert [name for name in (b"first", b"second", b"puts", b"third") if symbols.offers(NeededSymbol(name, b""))] == [
        b"first", b"second",
    ]  # fmt: skip
    assert NeededSymbol(b"puts", b"GLIBC_2.2.5") in symbols.needed


def test_a_file_that_offers_nothing_needs_what_it_needs(cc: Compile) -> None:
    """Its .gnu.hash begins at the first symbol all the same."""
    source = '#include <stdio.h>\n__attribute__((constructor)) static void start(void) { puts("x"); }'
    symbols = symbols_of(cc("x.so", source, "-Wl,--exclude-libs,ALL"))

    assert NeededSymbol(b"puts", b"GLIBC_2.2.5") in symbols.needed
    assert not symbols.offers(NeededSymbol(b"start", b""))


def test_a_damaged_symbol_table_is_unreadable_and_costs_nothing(cc: Compile) -> None:
    """Any byte of the headers and tables may be anything; then it is read, or said not to be readable."""
    whole = cc("x.so", '#include <stdio.h>\nint f(void) { return puts("x"); }', "-lm").read_bytes()
    random = Random(17)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(random.randint(1, 8)):
            data[random.randrange(len(data) if random.random() < 0.2 else 4096)] = random.choice((0, 1, 0x7F, 0xFF))
        source = MemorySource(bytes(data))
        with contextlib.suppress(UnreadableError):
            read_symbols(source, read_elf(source))
