#!/bin/bash
# Provokes the failures whose logs lie in tests/diagnose/logs, with real tools, and writes those logs anew.
#
#   sudo PATH="$PATH" tests/diagnose/provoke.sh FOLDER [NAME...]
#
# Each runs in a mount namespace of its own with an empty /srv/project, so that paths are alike everywhere; a tool that
# is to be killed or missing has another file mounted over it there. Nothing outside of FOLDER is changed. Needs g++ 12,
# CUDA 13, cmake, ninja 1.13, make, ccache, sccache and cargo on PATH; what lacks its tool gives a log that says so: look first.
set -u
out=$(realpath "$1"); shift
only=" $* "
nvcc=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
cuda=${nvcc%/bin/nvcc}

log() {  # log NAME SCRIPT: what the script prints, in the order in which it is printed
    [[ "$only" == "  " || "$only" == *" $1 "* ]] || return 0
    unshare -m env -i PATH="$cuda/bin:$PATH" HOME=/srv LC_ALL=C CUDA="$cuda" TOOLS="${TOOLS:-}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" bash -c '
        mount -t tmpfs tmpfs /srv && mkdir /srv/project && cd /srv/project || exit 1
        kill_tool() { printf "#!/bin/sh\nkill -s $2 \$\$\n" >/srv/killed && chmod 755 /srv/killed && mount --bind /srv/killed "$1"; }
        hide() { mount --bind /dev/null "$1"; }
        as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
        cc1plus=$(g++ -print-prog-name=cc1plus); ld=$(readlink -f "$(which ld)"); ninja=$(which ninja)
        printf "int main() { return 0; }\n" >main.cpp
        printf "__global__ void kernel(float *x) { x[threadIdx.x] += 1; }\n" >kernel.cu
        ninja_of() { printf "rule run\n  command = %s\n  description = Building CXX object %s\nbuild %s: run\n" "$2" "$1" "$1" >build.ninja; }
        eval "$0"
    ' "$2" </dev/null >"$out/$1.log" 2>&1
    printf '%-28s %s\n' "$1" "$(wc -c <"$out/$1.log")"
}

# Memory
log memory-cc1plus 'kill_tool $cc1plus KILL; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log memory-ld 'kill_tool $ld KILL; ninja_of app "g++ main.cpp -o app"; ninja'
log memory-ld-rust 'printf "fn main() {}\n" >main.rs; kill_tool "$(readlink -f "$(which cc)")" KILL; rustc main.rs'
log memory-ulimit 'printf "#include <map>\n#include <string>\n#include <regex>\nint main() { std::regex r(\"a\"); }\n" >main.cpp
    ulimit -v 90000; g++ -O2 -c main.cpp'
log memory-ld-ulimit 'printf "#include <regex>\nint main() { std::regex r(\"a\"); }\n" >main.cpp; g++ -g -O1 -c main.cpp; ulimit -v 9000; ld -r main.o -o one.o'
log step-killed 'kill_tool $CUDA/nvvm/bin/cicc KILL; ninja_of kernel.cu.o "nvcc -c kernel.cu -o kernel.cu.o"; ninja'
log step-killed-make 'printf "huge.o:\n\t@echo CXX huge.o\n\t@kill -KILL \$\$\$\$\n" >Makefile; make'
log step-killed-137 'ninja_of huge.o "sh -c \"exit 137\""; ninja'
log memory-python 'python3 -c "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); bytearray(1 << 29)"'
log fork-refused 'printf "all: a b c\na b c:\n\tsleep 1\n" >Makefile; chmod 777 .; as_nobody bash -c "ulimit -u 1; make -j 3"'

# The system
log no-space 'mkdir tmp; mount -t tmpfs -o size=64k tmpfs tmp; printf "#include <regex>\nint main() { std::regex r(\"a\"); }\n" >main.cpp
    export TMPDIR=$PWD/tmp; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log no-space-ld 'mkdir small; mount -t tmpfs -o size=8k tmpfs small; g++ main.cpp -o small/app'
log no-space-python 'mkdir small; mount -t tmpfs -o size=8k tmpfs small; python3 -c "open(\"small/wheel\", \"wb\").write(bytes(1 << 20))"'
log read-only 'mkdir tree; mount -t tmpfs -o ro tmpfs tree; mkdir tree/build; g++ main.cpp -o tree/app'
log ccache 'mkdir /srv/cache; chmod 700 /srv/cache; chmod 777 .; as_nobody env CCACHE_DIR=/srv/cache ccache g++ -c main.cpp -o main.o'
log sccache 'export SCCACHE_SERVER_PORT=14226 SCCACHE_DIR=/proc/cache; sccache g++ -c main.cpp -o main.o; sccache --stop-server >/dev/null 2>&1'
log permission-denied 'printf "echo\n" >configure; chmod 644 configure; sh -c ./configure; mkdir out; as_nobody g++ main.cpp -o out/app; as_nobody mkdir build'
log too-many-files 'printf "rule r\n  command = sleep 1 #\$out\n" >build.ninja; for i in $(seq 20); do echo "build o$i: r" >>build.ninja; done; ulimit -n 10; ninja -j 20'
log argument-list 'long=$(head -c 140000 /dev/zero | tr "\0" x); printf "rule r\n  command = echo %s\n  description = Linking libtorch_cpu.so\nbuild lib: r\n" $long >build.ninja; ninja'
log argument-list-make 'long=$(head -c 140000 /dev/zero | tr "\0" x); printf "lib:\n\t@echo \"%s\"\n" $long >Makefile; make'
log text-file-busy 'cp /bin/true generator; exec 3>>generator; ninja_of tables.h ./generator; ninja'
log name-too-long 'name=$(head -c 300 /dev/zero | tr "\0" x); g++ -c main.cpp -o $name.o'
log clock-skew 'printf "app: main.cpp\n\tg++ main.cpp -o app\n" >Makefile; touch -d "+1 hour" main.cpp; make'
log command-not-found 'ninja_of lexer.c "flex -o lexer.c lexer.l"; ninja'
log command-not-found-make 'printf "lexer.c:\n\tbison lexer.l\n" >Makefile; hide /usr/bin/bison 2>/dev/null; make'
log command-not-found-bash 'bash -c "gperf words"; bash -c "protoc --version"'

# CUDA
log gpu-architecture 'ninja_of kernel.cu.o "nvcc -gencode arch=compute_50,code=sm_50 -c kernel.cu -o kernel.cu.o"; ninja'
log gpu-architecture-ptxas 'nvcc -arch=compute_80 -ptx kernel.cu -o kernel.ptx; ptxas -arch=sm_140 kernel.ptx -o kernel.cubin'
log cuda-arch-empty 'printf "cmake_minimum_required(VERSION 3.22)\nset(CMAKE_CUDA_ARCHITECTURES \"\")\nproject(p LANGUAGES CXX CUDA)\n" >CMakeLists.txt; cmake -B build'
log cuda-not-found 'mount -t tmpfs tmpfs $CUDA; for f in $(which -a nvcc); do hide $f; done; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX CUDA)\n" >CMakeLists.txt; cmake -B build'
log cuda-toolkit-not-found 'mount -t tmpfs tmpfs $CUDA; for f in $(which -a nvcc); do hide $f; done; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_package(CUDAToolkit REQUIRED)\n" >CMakeLists.txt; cmake -B build'
log cudnn 'printf "#include <cudnn.h>\n" >conv.cpp; g++ -c conv.cpp -o conv.o; g++ main.cpp -lcudnn -o app'
log host-compiler 'ninja_of kernel.cu.o "nvcc -Xcompiler -U__GNUC__,-D__GNUC__=16 -c kernel.cu -o kernel.cu.o"; ninja'
log host-compiler-missing 'nvcc -ccbin /srv/nowhere/g++-9 -c kernel.cu -o kernel.o'
log nvcc-option 'nvcc -march=native -c kernel.cu -o kernel.o'
log ptxas 'printf "__global__ void kernel(float *x) { __shared__ float s[20000]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[threadIdx.x + 1]; }\n" >kernel.cu; nvcc -arch=sm_80 -c kernel.cu -o kernel.o'
log ptxas-version 'printf ".version 99.0\n.target sm_80\n.address_size 64\n" >kernel.ptx; ptxas -arch=sm_80 kernel.ptx -o kernel.cubin'
log nvlink 'printf "extern __device__ float scale(float);\n__global__ void kernel(float *x) { x[0] = scale(x[0]); }\n" >kernel.cu; nvcc -arch=sm_80 -rdc=true -shared kernel.cu -o kernel.so'
log compile-error-nvcc 'printf "__global__ void kernel(float *x) { x[0] = undeclared; }\n" >kernel.cu; ninja_of kernel.cu.o "nvcc -c kernel.cu -o kernel.cu.o"; ninja'
log missing-header-nvcc 'sed -i "1i #include <cutlass/cutlass.h>" kernel.cu; nvcc -c kernel.cu -o kernel.o'

# Compilers and linkers
log internal-compiler-error 'kill_tool $cc1plus ABRT; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log compiler-segfault 'kill_tool $cc1plus SEGV; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log linker-segfault 'kill_tool $ld SEGV; g++ main.cpp -o app'
log step-segfault 'printf "tables.h:\n\t@kill -SEGV \$\$\$\$\n" >Makefile; make'
log relocation 'printf "char a[3000000000]; char b[3000000000]; int main() { return a[5] + b[7]; }\n" >big.c; gcc big.c -o big'
log python-headers 'printf "#include <Python.h>\n" >ext.c; gcc -c ext.c -o ext.o'
log missing-header 'printf "#include <mpi.h>\nint main() {}\n" >main.cpp; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log abi-link 'printf "#include <string>\nvoid greet(const std::string &) {}\n" >greet.cpp; printf "#include <string>\nvoid greet(const std::string &); int main() { greet(\"\"); }\n" >main.cpp
    g++ -D_GLIBCXX_USE_CXX11_ABI=0 -c greet.cpp; g++ main.cpp greet.o -o app'
log undefined-reference 'printf "int compute();\nint main() { return compute(); }\n" >main.cpp; g++ main.cpp -o app'
log abi-extension 'printf "#include <string>\nnamespace c10 { struct SourceLocation { const char *f, *n; unsigned l; }; struct Error { Error(SourceLocation, std::string); }; }\nextern \"C\" void PyInit_ext() { c10::Error e({}, \"\"); }\n" >ext.cpp
    g++ -shared -fPIC ext.cpp -o ext.so; python3 -c "import ext"'
log undefined-symbol 'printf "int compute();\nint PyInit_ext() { return compute(); }\n" >ext.c; gcc -w -shared -fPIC ext.c -o ext.so; python3 -c "import ext"'
log undefined-symbol-app 'echo "int compute() { return 1; }" | gcc -xc -shared - -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c; gcc -w main.c -L. -lcompute -Wl,-rpath,. -o app
    echo "int other;" | gcc -xc -shared - -o libcompute.so; ./app'
log glibc 'echo "int compute() { return 1; }" >c.c; echo "GLIBC_2.99 { global: compute; };" >v; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c
    gcc -w main.c -L. -lcompute -Wl,-rpath,. -o app; echo "GLIBC_2.2 { global: compute; };" >v; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; ./app'
log shared-library 'echo "int compute() { return 1; }" | gcc -xc -shared - -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c; gcc -w main.c -L. -lcompute -o app; ./app; python3 -c "import ctypes; ctypes.CDLL(\"libcompute.so\")"'
log missing-library 'g++ main.cpp -lopenblas -o app'
log multiple-definition 'echo "int counter;" >a.c; cp a.c b.c; gcc -c a.c b.c; ld -r a.o b.o -o ab.o'
log wrong-format 'printf "damaged" >a.o; g++ main.cpp a.o -o app; printf "int x;" | gcc -m32 -xc -c - -o b.o; ld main.o b.o; printf "\177ELF damaged" >tool; chmod 755 tool; sh -c ./tool; bash -c ./tool'
log wrong-format-32 'printf "int x;" | gcc -m32 -xc -c - -o b.o; g++ main.cpp b.o -o app'
log compiler-option 'g++ -fno-such-thing -c main.cpp -o main.o'
log cxx-standard 'printf "#include <atomic>\nint main() {}\n" >main.cpp; g++ -std=c++98 -c main.cpp -o main.o'
log assembler 'printf "int main() { asm(\"vpnewest %%ymm0, %%ymm1\"); }\n" >main.cpp; g++ -c main.cpp -o main.o'
log werror 'printf "int main() { int x; }\n" >main.cpp; ninja_of main.cpp.o "g++ -Wall -Werror -c main.cpp -o main.cpp.o"; ninja'
log werror-colour 'printf "int main() { int x; }\n" >main.cpp; g++ -fdiagnostics-color=always -Wall -Werror -c main.cpp -o main.o'
log compiler-not-found 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n" >CMakeLists.txt; cmake -B build -DCMAKE_CXX_COMPILER=/srv/nowhere/g++'
log compiler-not-found-cxx 'hide $cc1plus; g++ -c main.cpp -o main.o'
log compiler-not-found-env 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n" >CMakeLists.txt; CXX=/srv/nowhere/g++ cmake -B build'
log compiler-broken 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n" >CMakeLists.txt; ld=$(readlink -f $(which ld)); printf "#!/bin/sh\necho ld: I am a teapot >&2; exit 1\n" >/srv/ld; chmod 755 /srv/ld; mount --bind /srv/ld $ld; cmake -B build'
log compile-error 'printf "int main() { return undeclared; }\n" >main.cpp; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log compile-error-make 'printf "int main() { return undeclared; }\n" >main.cpp; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nadd_executable(app main.cpp)\n" >CMakeLists.txt; cmake -B build -G "Unix Makefiles"; cmake --build build -j 2'
log compile-error-colour 'printf "int main() { return undeclared; }\n" >main.cpp; LC_ALL=C.UTF-8 g++ -fdiagnostics-color=always -c main.cpp -o main.o'
log compile-error-rust 'printf "fn main() { undeclared }\n" >main.rs; rustc --color never main.rs'

# CMake
lists='printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\n%s\n"'
log missing-submodule 'mkdir -p third_party/gloo; '"$lists"' "add_subdirectory(third_party/gloo)" >CMakeLists.txt; cmake -B build'
log missing-submodule-hint "$lists"' "if(NOT EXISTS third_party/gloo/CMakeLists.txt)
  message(FATAL_ERROR \"third_party/gloo is empty. Did you run '"'git submodule update --init --recursive'"'?\")
endif()" >CMakeLists.txt; cmake -B build'
log cmake-no-lists 'cmake -B build'
log cmake-too-old 'printf "cmake_minimum_required(VERSION 3.99)\n" >CMakeLists.txt; cmake -B build'
log cmake-too-new 'printf "cmake_minimum_required(VERSION 3.0)\nproject(p LANGUAGES NONE)\n" >CMakeLists.txt; $TOOLS/cmake -B build'
log cmake-generator "$lists"' "" >CMakeLists.txt; cmake -B build -G "Unix Makefiles" >/dev/null; cmake -B build -G Ninja'
log cmake-moved 'mkdir old; cd old; '"$lists"' "" >CMakeLists.txt; cmake -B build >/dev/null; cd ..; mv old moved; cd moved; cmake -B build'
log cmake-no-ninja 'for f in $(which -a ninja); do hide $f; done; '"$lists"' "" >CMakeLists.txt; cmake -B build -G Ninja'
log cmake-package 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C)\nfind_package(OpenCL REQUIRED)\n" >CMakeLists.txt; cmake -B build'
log cmake-package-config "$lists"' "find_package(Torch REQUIRED)" >CMakeLists.txt; cmake -B build'
log cmake-pkg-config "$lists"' "find_package(PkgConfig REQUIRED)
pkg_check_modules(GLOO REQUIRED gloo)" >CMakeLists.txt; cmake -B build'
log cmake-hash 'echo data >data; '"$lists"' "file(DOWNLOAD file:///srv/project/data copy EXPECTED_HASH SHA256=00)" >CMakeLists.txt; cmake -B build'
log cmake-download 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(ExternalProject)\nExternalProject_Add(dep URL http://git.invalid/dep.tar.gz)\n" >CMakeLists.txt; cmake -B build -G Ninja >/dev/null; ninja -C build'
log cmake-refused 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(ExternalProject)\nExternalProject_Add(dep URL http://127.0.0.1:9/dep.tar.gz)\n" >CMakeLists.txt; cmake -B build -G Ninja >/dev/null; ninja -C build'
log cmake-error "$lists"' "message(FATAL_ERROR \"BUILD_SHARED_LIBS must be ON\")" >CMakeLists.txt; cmake -B build'

# ninja and make
log ninja-missing-input 'printf "rule cc\n  command = cc -c \$in -o \$out\nbuild out.o: cc gone.c\n" >build.ninja; ninja'
log ninja-no-manifest 'ninja'
log ninja-unknown-target 'printf "rule cc\\n  command = cc\\nbuild a.o: cc\\n" >build.ninja; ninja aa.o'
log ninja-no-folder 'ninja -C gone'
log ninja-dirty 'printf "rule gen\n  command = touch build.ninja\n  generator = 1\nbuild build.ninja: gen lists\n" >build.ninja; touch -d "+1 hour" lists; ninja'
log ninja-manifest 'printf "rule cc\n  command = cc\nbuild out.o: cc\nbuild out.o: cc\n" >build.ninja; ninja'
log ninja-cycle 'printf "rule cc\n  command = cc\nbuild a: cc b\nbuild b: cc a\n" >build.ninja; ninja a'
log ninja-rule 'printf "build a.o: cxx a.cpp\n" >build.ninja; ninja'
log ninja-not-found 'sh -c "PATH=/srv ninja -C build"; bash -c "PATH=/srv ninja -C build"; python3 -c "import subprocess; subprocess.run([\"ninja\"], env={\"PATH\": \"/srv\"})" 2>&1 | tail -1'
log make-no-rule 'printf "out.o: gone.c\n\tcc -c gone.c\n" >Makefile; make'
log make-no-makefile 'make'
log interrupted 'kill_tool $cc1plus TERM; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log interrupted-make 'printf "app:\n\t@kill -TERM \$\$\$\$\n" >Makefile; make'

# Python
backend='printf "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n" >pyproject.toml'
log no-torch "$backend"'; printf "import torch\n" >backend.py; python3 -m pip --disable-pip-version-check wheel --no-index .'
log compile-error-pip "$backend"'; printf "def build_wheel(*args):\n    import subprocess\n    subprocess.run([\"g++\", \"-c\", \"ext.cpp\"], check=True)\n" >backend.py; echo "int f() { return undeclared; }" >ext.cpp
    python3 -m pip --disable-pip-version-check wheel --no-index .'
log memory-pip "$backend"'; printf "def build_wheel(*args):\n    import subprocess\n    subprocess.run([\"ninja\", \"-v\"], check=True)\n" >backend.py; kill_tool $cc1plus KILL; ninja_of ext.o "g++ -c main.cpp -o ext.o"
    python3 -m pip --disable-pip-version-check wheel --no-index .'
log no-setuptools 'printf "from setuptools import setup\nsetup()\n" >setup.py; python3 -S setup.py bdist_wheel'
log python-module '/usr/bin/python3 -c "import codegen_of_nobody"; /usr/bin/python3 -m codegen_of_nobody'
log python-version "$backend"'; printf "import os\ndef prepare_metadata_for_build_wheel(folder, *_):\n    os.mkdir(folder + \"/p-1.dist-info\")\n    open(folder + \"/p-1.dist-info/METADATA\", \"w\").write(\"Metadata-Version: 2.1\\\\nName: p\\\\nVersion: 1\\\\nRequires-Python: >=3.99\\\\n\")\n    return \"p-1.dist-info\"\ndef build_wheel(*_): pass\n" >backend.py; python3 -m pip --disable-pip-version-check wheel --no-index .'
log externally-managed '/usr/bin/python3 -m pip install --no-index torch'
log no-distribution 'python3 -m pip --disable-pip-version-check wheel --no-index torch==99.0'
log rust-missing 'sh -c "PATH=/srv cargo build"; printf "core:\n\tPATH=/srv cargo build\n" >Makefile; make'
log rust-too-old 'mkdir src; echo "fn main() {}" >src/main.rs; printf "[package]\nname = \"p\"\nversion = \"1.0.0\"\nedition = \"2021\"\nrust-version = \"1.999\"\n" >Cargo.toml; cargo build --offline'

# The network
log no-name 'git clone https://git.invalid/project.git; curl -sS https://git.invalid/; python3 -c "import urllib.request as u; u.urlopen(\"http://git.invalid/\")" 2>&1 | tail -1'
log fetch-failed 'git clone https://127.0.0.1:9/project.git; curl -sS http://127.0.0.1:9/; python3 -c "import urllib.request as u; u.urlopen(\"http://127.0.0.1:9/\")" 2>&1 | tail -1'
log tls 'openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 1 -subj /CN=127.0.0.1 2>/dev/null; openssl s_server -accept 127.0.0.1:44330 -key k -cert c -www >/dev/null 2>&1 & sleep 1
    git clone https://127.0.0.1:44330/project.git; curl -sS https://127.0.0.1:44330/; python3 -c "import urllib.request as u; u.urlopen(\"https://127.0.0.1:44330/\")" 2>&1 | tail -1; kill $!'
log git-missing 'git clone /srv/gone.git; git init -q tree; cd tree; git submodule add -q /srv/gone.git third_party/gone'
log git-ownership 'git init -q tree; chown -R nobody tree; git -C tree status'
log git-lfs 'git init -q origin; cd origin; echo "*.bin filter=lfs" >.gitattributes; echo x >model.bin; git add .; git -c user.name=a -c user.email=a@example.invalid commit -qm a; cd ..
    git config --global filter.lfs.process "git-lfs filter-process"; git config --global filter.lfs.smudge "git-lfs smudge -- %f"; git config --global filter.lfs.required true; git clone origin copy'

# Builds that are well, with much in them that looks like a failure
log clean-ninja 'printf "#include <stdio.h>\nint main() { int error; puts(\"error: No space left on device\"); }\n" >error.cpp; printf "rule cc\n  command = g++ -Wall -c \$in -o \$out\n  description = Building CXX object error_Killed.cpp.o\nbuild error.o: cc error.cpp\n" >build.ninja; ninja; ninja'
log clean-cmake 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C CXX CUDA)\nfind_package(Torch)\nfind_package(OpenCL)\nfind_package(MPI)\nfind_package(PkgConfig)\nfind_package(CUDNN)\nmessage(WARNING \"Could NOT find CUDNN\n  Cannot find cuDNN library. Turning the option off\")\nadd_executable(app main.cpp kernel.cu)\n" >CMakeLists.txt; cmake -B build -G "Unix Makefiles" && cmake --build build -j 2'
log clean-verbose 'printf "#include <stdio.h>\nint main() { char *killed; fprintf(stderr, \"internal compiler error: Killed\"); printf(\"%%d\", 1l); }\n" >a.cpp; LC_ALL=C.UTF-8 g++ -fdiagnostics-color=always -Wall -DMESSAGE="\"undefined reference to x\"" -c a.cpp -o a.o; printf "all:\n\tg++ -Werror=return-type -Wno-error -c main.cpp -o main.o\n\t-rm no-such-error\n" >Makefile; make'
log clean-pip "$backend"'; printf "def build_wheel(folder, *_):\n    import zipfile\n    with zipfile.ZipFile(folder + \"/p-1-py3-none-any.whl\", \"w\") as z:\n        for n, t in ((\"METADATA\", \"Metadata-Version: 2.1\\\\nName: p\\\\nVersion: 1\\\\n\"), (\"WHEEL\", \"Wheel-Version: 1.0\\\\nRoot-Is-Purelib: true\\\\nTag: py3-none-any\\\\n\"), (\"RECORD\", \"\")):\n            z.writestr(\"p-1.dist-info/\" + n, t)\n    return \"p-1-py3-none-any.whl\"\n" >backend.py; python3 -m pip --disable-pip-version-check wheel -v --no-index .'
