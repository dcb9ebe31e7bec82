#!/bin/bash
# Provokes the failures whose logs lie in tests/diagnose/logs, with real tools, and writes those logs anew.
#
#   sudo PATH="$PATH" tests/diagnose/provoke.sh FOLDER [NAME...]
#
# Each runs in a mount namespace of its own with an empty /srv/project, so that paths are alike everywhere; a tool that
# is to be killed or missing has another file mounted over it there. Nothing outside of FOLDER is changed. Needs g++ 12,
# CUDA 13, cmake, ninja 1.13, make, ccache, sccache, cargo, clang 19, lld, gfortran, go, meson, protoc, autoconf, pkg-config,
# busybox, bmake and aarch64-linux-gnu-gcc on PATH, and in TOOLS the bin of a virtual environment with CMake 4 and setuptools; what lacks its tool gives
# a log that says so: look first.
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
log memory-wordless 'kill_tool "$(readlink -f "$(which g++)")" KILL; ninja_of main.cpp.o "exec g++ -c main.cpp -o main.cpp.o"
    /usr/bin/ninja' # 1.11: from 1.12 on ninja says code=137
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
log nvcc-pair 'nvcc -gencode arch=compute_90,code=sm_80 -c kernel.cu -o kernel.o'
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
log abi-string 'printf "#include <string>\nvoid greet(const std::string &) {}\nstd::string name() { return \"\"; }\n" >greet.cpp
    printf "#include <string>\nvoid greet(const std::string &); std::string name(); int main() { greet(name()); }\n" >main.cpp
    g++ -D_GLIBCXX_USE_CXX11_ABI=0 -shared -fPIC greet.cpp -o libgreet.so; g++ main.cpp -L. -lgreet -o app'
log undefined-reference 'printf "int compute();\nint main() { return compute(); }\n" >main.cpp; g++ main.cpp -o app'
log extern-c 'printf "int compute(int);\n" >compute.h; printf "#include \"compute.h\"\nint compute(int x) { return x; }\n" >compute.c; gcc -c compute.c && ar rcs libcompute.a compute.o; printf "#include \"compute.h\"\nint main() { return compute(1); }\n" >main.cpp; g++ main.cpp -L. -lcompute -o app; nm libcompute.a'
log processor-flags 'echo "int f(void) { return 1; }" >a.c; for flag in -mavx2 -march=haswell -march=native -march=armv8.2-a+gears -march=armv99-a; do aarch64-linux-gnu-gcc $flag -c a.c; done'
log make-stale-header 'printf "OBJS = main.o\nCPPFLAGS = -MMD\napp: \$(OBJS)\n\tg++ -o \$@ \$(OBJS)\n-include \$(OBJS:.o=.d)\n" >Makefile; echo "#include \"gears.h\"" >>main.cpp; echo >gears.h; make; mv gears.h wheels.h; printf "#include \"wheels.h\"\nint main() {}\n" >main.cpp; make'
log ninja-byproduct 'mkdir sub; printf "cmake_minimum_required(VERSION 3.20)\nproject(gears NONE)\n" >sub/CMakeLists.txt; printf "cmake_minimum_required(VERSION 3.20)\nproject(p CXX)\ninclude(ExternalProject)\nExternalProject_Add(gears_ep SOURCE_DIR \${CMAKE_SOURCE_DIR}/sub)\nadd_library(gears STATIC IMPORTED)\nset_target_properties(gears PROPERTIES IMPORTED_LOCATION \${CMAKE_BINARY_DIR}/deps/lib/libgears.a)\nadd_dependencies(gears gears_ep)\nadd_executable(app main.cpp)\ntarget_link_libraries(app gears)\n" >CMakeLists.txt; cmake -S . -B build -G Ninja; ninja -C build'
log cmake-target-of-package 'mkdir modules; echo "include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(zstd REQUIRED_VARS zstd_LIBRARY zstd_INCLUDE_DIR)" >modules/Findzstd.cmake; printf "cmake_minimum_required(VERSION 3.22)\nproject(p CXX)\nlist(APPEND CMAKE_MODULE_PATH \${CMAKE_SOURCE_DIR}/modules)\nfind_package(zstd)\nadd_library(base INTERFACE)\ntarget_link_libraries(base INTERFACE zstd::libzstd_shared)\nadd_executable(app main.cpp)\ntarget_link_libraries(app base)\n" >CMakeLists.txt; cmake -B build'
log abi-extension 'printf "#include <string>\nnamespace c10 { struct SourceLocation { const char *f, *n; unsigned l; }; struct Error { Error(SourceLocation, std::string); }; }\nextern \"C\" void PyInit_ext() { c10::Error e({}, \"\"); }\n" >ext.cpp
    g++ -shared -fPIC ext.cpp -o ext.so; python3 -c "import ext"'
log undefined-symbol 'printf "int compute();\nint PyInit_ext() { return compute(); }\n" >ext.c; gcc -w -shared -fPIC ext.c -o ext.so; python3 -c "import ext"'
log undefined-symbol-app 'echo "int compute() { return 1; }" | gcc -xc -shared - -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c; gcc -w main.c -L. -lcompute -Wl,-rpath,. -o app
    echo "int other;" | gcc -xc -shared - -o libcompute.so; ./app'
log glibc 'echo "int compute() { return 1; }" >c.c; echo "GLIBC_2.99 { global: compute; };" >v; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c
    gcc -w main.c -L. -lcompute -Wl,-rpath,. -o app; echo "GLIBC_2.2 { global: compute; };" >v; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; ./app'
log shared-library 'echo "int compute() { return 1; }" | gcc -xc -shared - -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c; gcc -w main.c -L. -lcompute -o app; ./app; python3 -c "import ctypes; ctypes.CDLL(\"libcompute.so\")"'
log missing-cuda-library 'g++ main.cpp -lcublas -lcudart -o app'
log missing-cuda-driver 'g++ main.cpp -lcuda -o app'
log nvcc-host-function 'printf "int h(){return 1;}\n__global__ void k(int*p){ *p = h(); }\n" >a.cu; nvcc -c a.cu'
log cmake-empty-variable 'printf "cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\nstring(REPLACE x y V \${NOTSET})\nif(\${NOTSET} VERSION_LESS 3)\nendif()\n" >CMakeLists.txt; cmake -S . -B b'
log cmake-target-of-others 'printf "cmake_minimum_required(VERSION 3.20)\nproject(x C)\ntarget_link_libraries(nobody PUBLIC m)\n" >CMakeLists.txt; cmake -S . -B b'
log cmake-export-path 'touch c.c; printf "cmake_minimum_required(VERSION 3.20)\nproject(x C)\nadd_library(core SHARED c.c)\ntarget_include_directories(core PUBLIC \${CMAKE_CURRENT_SOURCE_DIR}/include)\ninstall(TARGETS core EXPORT t)\ninstall(EXPORT t DESTINATION lib)\n" >CMakeLists.txt; cmake -B build'
log cmake-install-folder 'touch p; printf "cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\ninstall(FILES CMakeLists.txt DESTINATION include)\n" >CMakeLists.txt; cmake -S . -B b; cmake --install b --prefix p'
log link-no-object 'g++ main.cpp build/kernel.o -o app; g++ -fuse-ld=gold main.cpp build/kernel.o -o app'
log link-false 'g++ main.cpp -lFALSE -o app; g++ main.cpp CUDA_cublas_LIBRARY-NOTFOUND -o app'
log link-target 'g++ main.cpp -lprotobuf::libprotobuf -o app'
log march-32 'gcc -march=i686 -x c -c /dev/null -o a.o'
log assembly-cut 'printf "f:\n .cfi_startproc\n nop\n" | as -o a.o -'
log python-no-setup 'python3 setup.py install'
log libc-struct 'printf "#include <signal.h>\n#include <ucontext.h>\nint f(void *v) { struct ucontext *u = v; return u->uc_mcontext.gregs[0]; }\n" >u.c; gcc -c u.c; printf "#include <signal.h>\nint f() { struct sigaltstack s; return s.ss_size; }\n" >s.cpp; g++ -c s.cpp'
log libc-name 'printf "#include <malloc.h>\n#include <stdio.h>\nvoid f(int e) { __malloc_hook = 0; puts(sys_errlist[e]); }\n" >m.c; gcc -c m.c'
log libc-major 'printf "#include <sys/types.h>\nint main(void) { return major(1); }\n" >m.c; gcc -w m.c -o app'
log large-file 'printf "#include <sys/types.h>\n#include <unistd.h>\noff64_t at(int f) { return lseek64(f, 0, 1); }\n" >l.c; gcc -std=c99 -c l.c'
log cpp14 'printf "constexpr int f(int a) { int b = a; return b; }\nauto g(int a) { return a; }\n" >c.cpp; g++ -std=c++11 -c c.cpp'
log macro-undefined 'printf "PLUGIN_REGISTER_TYPE(foo, m) {\n  m.def(1);\n}\n" >p.cpp; g++ -c p.cpp'
log macro-torch 'printf "TORCH_LIBRARY_FRAGMENT(torchvision, m) {\n  m.def(1);\n}\n" >p.cpp; g++ -c p.cpp'
log missing-library 'g++ main.cpp -lopenblas -o app'
log multiple-definition 'echo "int counter;" >a.c; cp a.c b.c; gcc -c a.c b.c; ld -r a.o b.o -o ab.o'
log wrong-format 'printf "damaged" >a.o; g++ main.cpp a.o -o app; printf "\177ELF damaged" >tool; chmod 755 tool; sh -c ./tool; bash -c ./tool'
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

# Compilers and linkers: what the line itself names
log fpic 'printf "int counter; int next() { return ++counter; }\n" >a.c; gcc -fno-pic -c a.c; ar rc liba.a a.o; gcc -shared -Wl,--whole-archive liba.a -Wl,--no-whole-archive -o libb.so'
log dso-missing 'printf "int next(void) { return 1; }\n" >a.c; gcc -shared -fPIC a.c -o liba.so; printf "int next(void); int over(void) { return next(); }\n" >b.c; gcc -shared -fPIC b.c -L. -la -o libb.so
    printf "int next(void), over(void); int main(void) { return next() + over(); }\n" >m.c; gcc m.c -L. -lb -Wl,-rpath-link,. -o app'
log undefined-main 'printf "int f() { return 1; }\n" >main.cpp; g++ main.cpp -o app'
log undefined-vtable 'printf "struct A { virtual int f(); }; int main() { A a; return 0; }\n" >main.cpp; g++ main.cpp -o app'
log undefined-stdcxx 'printf "#include <string>\nint main(int n, char **) { std::string s(n, 1); return s.size(); }\n" >main.cpp; g++ -c main.cpp; gcc main.o -o app'
log undefined-math 'printf "#include <math.h>\nint main(int n, char **v) { return (int)pow(n, n + 0.5); }\n" >m.c; gcc m.c -o app'
log undefined-openmp 'printf "#include <omp.h>\nint main() { return omp_get_max_threads(); }\n" >m.c; gcc -fopenmp -c m.c; gcc m.o -o app'
log undefined-atomic 'printf "struct S { char c[24]; }; int main() { struct S a = {0}, b; __atomic_load(&a, &b, 5); return b.c[0]; }\n" >m.c; gcc m.c -o app'
log undefined-cuda-driver 'printf "#include <cuda.h>\nint main() { CUdevice d; return cuInit(0) + cuDeviceGet(&d, 0); }\n" >m.cpp; g++ -I$CUDA/include m.cpp -o app'
log undefined-cuda-runtime 'nvcc -c kernel.cu -o kernel.o; printf "extern void run(); int main() { return 0; }\n" >main.cpp; g++ main.cpp kernel.o -o app'
log undefined-cblas 'printf "void cblas_dgemm(); void dgemm_(); int main() { cblas_dgemm(); dgemm_(); return 0; }\n" >m.c; gcc m.c -o app'
log undefined-nccl 'printf "int ncclGetVersion(int *); int main() { int v; return ncclGetVersion(&v); }\n" >m.c; gcc m.c -o app'
log undefined-cublas 'printf "int cublasCreate_v2(void **); int main() { void *h; return cublasCreate_v2(&h); }\n" >m.c; gcc m.c -o app'
log undefined-zlib 'printf "int deflateEnd(void *); int main() { return deflateEnd(0); }\n" >m.c; gcc m.c -o app'
log undefined-python 'printf "int Py_IsInitialized(void); int main() { return Py_IsInitialized(); }\n" >m.c; gcc m.c -o app'
log undefined-gcov 'printf "int main() { return 0; }\n" >m.c; gcc --coverage -c m.c; gcc m.o -o app'
log undefined-asan 'printf "int main(int n, char **v) { return v[n][0]; }\n" >m.c; gcc -fsanitize=address -c m.c; gcc m.o -o app'
log cstdint 'printf "namespace bits { struct Header { std::uint32_t size; }; uint8_t first; }\n" >main.cpp; g++ -c main.cpp'
log std-array 'printf "#include <tuple>\nstd::array<int, 3> shape;\n" >main.cpp; g++ -c main.cpp'
log std-member 'printf "#include <vector>\nint main() { return std::numeric_limits<int>::max() + std::accumulate(0, 0, 0); }\n" >main.cpp; g++ -c main.cpp'
log standard-span 'printf "#include <span>\nint main() { int a[3] = {}; std::span<int> s(a); return s[0]; }\n" >main.cpp; g++ -std=c++17 -c main.cpp'
log standard-filesystem 'printf "#include <filesystem>\nint main() { return std::filesystem::exists(\".\"); }\n" >main.cpp; g++ -std=c++14 -c main.cpp'
log standard-concept 'printf "template <class T> concept Small = sizeof(T) < 4;\nint main() {}\n" >main.cpp; g++ -std=c++17 -c main.cpp'
log standard-unknown 'ninja_of main.cpp.o "g++ -std=c++26 -c main.cpp -o main.cpp.o"; ninja'
log standard-too-new 'printf "#include <memory>\n#include <algorithm>\nvoid f() throw(int);\nint main() { std::auto_ptr<int> p; register int i = 0; return i; }\n" >main.cpp; g++ -std=c++17 -c main.cpp'
log narrowing 'printf "int main(int n, char **) { char a[] = {300}; return a[0]; }\n" >main.cpp; g++ -c main.cpp'
log permissive 'printf "int main() { char *p = \"text\"; const char *q = p; p = q; return *p; }\n" >main.cpp; g++ -c main.cpp'
log target-specific 'printf "#include <immintrin.h>\nint main() { __m256i a = _mm256_setzero_si256(); a = _mm256_add_epi32(a, a); return ((int *)&a)[0]; }\n" >main.cpp; g++ -c main.cpp'
log arm-header 'printf "#include <arm_neon.h>\nint main() {}\n" >main.cpp; g++ -c main.cpp'
log template-depth 'printf "template <int n> struct A { static const int v = A<n - 1>::v; }; template <> struct A<0> { static const int v = 0; };\nint main() { return A<2000>::v; }\n" >main.cpp; g++ -c main.cpp'
log constexpr-limit 'printf "constexpr long f() { long s = 0; for (long i = 0; i < 100000000; ++i) s += i; return s; }\nconstexpr long v = f(); int main() {}\n" >main.cpp; g++ -std=c++17 -c main.cpp 2>&1 | cut -c 1-300'
log hash-error 'printf "#ifndef PLATFORM_LINUX\n#error \"Unknown platform. Define PLATFORM_LINUX.\"\n#endif\nint x = undeclared;\n" >main.cpp; ninja_of main.cpp.o "g++ -c main.cpp -o main.cpp.o"; ninja'
log static-assert 'printf "static_assert(sizeof(long) == 4, \"only for 32 bits\");\nint main() {}\n" >main.cpp; g++ -c main.cpp'
log linker-missing 'g++ -fuse-ld=mold main.cpp -o app; clang++-19 -fuse-ld=mold main.cpp -o app'
log linker-option 'g++ -Wl,--no-such-option main.cpp -o app'
log output-folder 'g++ -c main.cpp -o gone/main.o; printf "a\n" | as -o gone/a.o; g++ -MD -MF gone/a.d -c main.cpp'
log source-gone 'g++ -c gone.cpp -o gone.o'
log multilib 'printf "#include <vector>\nint main() {}\n" >m32.cpp; g++ -m32 -c m32.cpp'
log include-next 'printf "#include <cstdlib>\nint main() {}\n" >main.cpp; g++ -isystem /usr/include -c main.cpp'
log clang-no-stdcxx 'printf "#include <iostream>\nint main() {}\n" >main.cpp; clang++-19 -nostdinc++ -c main.cpp'
log clang-werror 'printf "int main() { int x; }\n" >main.cpp; clang++-19 -Wall -Werror -c main.cpp'
log clang-implicit 'printf "int main(void) { return helper(3); }\n" >m.c; clang-19 -c m.c'
log clang-option 'clang++-19 -fno-such-thing -c main.cpp'
log clang-undefined 'printf "int compute(); int main() { return compute(); }\n" >main.cpp; clang++-19 -fuse-ld=lld main.cpp -o app'
log clang-library 'clang++-19 -fuse-ld=lld main.cpp -lopenblas -o app'
log fortran-mismatch 'printf "      program p\n      real x\n      integer i\n      call f(x)\n      call f(i)\n      end\n" >p.f; gfortran -c p.f'
log fortran-module 'printf "program p\n  use mpi\nend program\n" >p.f90; gfortran -c p.f90'
log illegal-instruction 'printf "tables.h:\n\t@kill -ILL \$\$\$\$\n" >Makefile; make'
log bus-error 'printf "tables.h:\n\t@kill -BUS \$\$\$\$\n" >Makefile; make'
log lto-plugin 'printf "int f(void) { return 1; }\n" >f.c; gcc -flto -c f.c; ar --plugin /bin/true rc libf.a f.o; printf "int f(void); int main(void) { return f(); }\n" >m.c; gcc -fno-lto -fno-use-linker-plugin m.c libf.a -o app'
log wrong-ar 'mkdir bin; printf "#!/bin/sh\nexec busybox ar \"\$@\"\n" >bin/ar; chmod 755 bin/ar; gcc -x c -c - -o a.o </dev/null; PATH=$PWD/bin:$PATH; ar qc liba.a a.o; ar rcs liba.a a.o'
log protoc-newer 'printf "syntax = \"proto3\"; message M { int32 a = 1; }\n" >m.proto; protoc --cpp_out=. m.proto; mkdir -p google/protobuf; sed "s/#define PROTOBUF_VERSION .*/#define PROTOBUF_VERSION 3012004/" /usr/include/google/protobuf/port_def.inc >google/protobuf/port_def.inc; g++ -I. -c m.pb.cc'
log protoc-older 'printf "syntax = \"proto3\"; message M { int32 a = 1; }\n" >m.proto; protoc --cpp_out=. m.proto; mkdir -p google/protobuf; sed "s/#define PROTOBUF_MIN_PROTOC_VERSION .*/#define PROTOBUF_MIN_PROTOC_VERSION 3999000/" /usr/include/google/protobuf/port_def.inc >google/protobuf/port_def.inc; g++ -I. -c m.pb.cc'
log proto-import 'printf "syntax = \"proto3\"; import \"other/types.proto\"; message M { int32 a = 1; }\n" >m.proto; protoc --cpp_out=. m.proto'
log protoc-plugin 'printf "syntax = \"proto3\"; message M { int32 a = 1; }\n" >m.proto; protoc --grpc_out=. m.proto'

# CUDA: more of it
log atomic-add 'printf "__global__ void kernel(float *x, short *s) { atomicAdd(s, (short)1); }\n" >kernel.cu; nvcc -arch=sm_80 -c kernel.cu -o kernel.o'
log nvcc-werror 'printf "__global__ void kernel(float *x) { int unused; x[0] = 1; }\n" >kernel.cu; nvcc -Werror all-warnings -c kernel.cu -o kernel.o'
log nvcc-std 'nvcc -std=c++26 -c kernel.cu -o kernel.o'
log nvcc-removed 'printf "#include <cstdio>\nint main() { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); printf(\"%%d\", p.clockRate); }\n" >main.cu; nvcc -c main.cu -o main.o'
log nvcc-shfl 'printf "__global__ void kernel(float *x) { x[0] = __shfl_down(x[0], 1); }\ntexture<float> t;\n" >kernel.cu; nvcc -c kernel.cu -o kernel.o'
log nvcc-two-inputs 'nvcc -c kernel.cu main.cpp -o kernel.o'
log ptxas-target 'printf "__global__ void kernel(float *x) { asm volatile(\"wgmma.fence.sync.aligned;\"); }\n" >kernel.cu; nvcc -arch=sm_80 -c kernel.cu -o kernel.o'
log cmake-cuda-arch 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX CUDA)\n" >CMakeLists.txt; cmake -B build -DCMAKE_CUDA_ARCHITECTURES=50'
log cmake-cuda-native 'printf "cmake_minimum_required(VERSION 3.24)\nset(CMAKE_CUDA_ARCHITECTURES native)\nproject(p LANGUAGES CXX CUDA)\nadd_library(k STATIC kernel.cu)\n" >CMakeLists.txt; cmake -B build'
log cmake-nvtx 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_package(CUDAToolkit)\nadd_executable(app main.cpp)\ntarget_link_libraries(app CUDA::nvToolsExt)\n" >CMakeLists.txt; cmake -B build'

# CMake: more of it
log cmake-command "$lists"' "ecm_setup_version(1.0)" >CMakeLists.txt; cmake -B build'
log cmake-include "$lists"' "include(KDEInstallDirs)" >CMakeLists.txt; cmake -B build'
log cmake-target 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nadd_executable(app main.cpp)\ntarget_link_libraries(app fmt::fmt)\n" >CMakeLists.txt; cmake -B build'
log cmake-no-subfolder "$lists"' "add_subdirectory(third_party/pybind11)" >CMakeLists.txt; cmake -B build'
log cmake-no-source 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nadd_executable(app gone.cpp)\n" >CMakeLists.txt; cmake -B build'
log cmake-notfound-var 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_library(BLAS_LIB openblas_of_nobody)\nadd_executable(app main.cpp)\ntarget_link_libraries(app \${BLAS_LIB})\n" >CMakeLists.txt; cmake -B build'
log cmake-package-version 'mkdir foo; printf "set(PACKAGE_VERSION 1.2.0)\nset(PACKAGE_VERSION_COMPATIBLE FALSE)\n" >foo/FooConfigVersion.cmake; touch foo/FooConfig.cmake; '"$lists"' "find_package(Foo 3.0 REQUIRED)" >CMakeLists.txt; cmake -B build -DFoo_DIR=$PWD/foo'
log cmake-package-false 'mkdir foo; printf "set(Foo_FOUND FALSE)\nset(Foo_NOT_FOUND_MESSAGE \"needs Bar\")\n" >foo/FooConfig.cmake; '"$lists"' "find_package(Foo REQUIRED)" >CMakeLists.txt; cmake -B build -DFoo_DIR=$PWD/foo'
log cmake-imported "$lists"' "add_library(foo SHARED IMPORTED)
file(WRITE \${CMAKE_BINARY_DIR}/FooConfig.cmake [[message(FATAL_ERROR \"The imported target \\\"Foo::foo\\\" references the file
   \\\"/usr/lib/libfoo.so.1\\\"
but this file does not exist.\")]])
find_package(Foo REQUIRED)" >CMakeLists.txt; cmake -B build -DFoo_DIR=build'
log cmake-dialect 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nadd_executable(app main.cpp)\nset_target_properties(app PROPERTIES CXX_STANDARD 26 CXX_STANDARD_REQUIRED ON)\n" >CMakeLists.txt; cmake -B build'
log cmake-policy "$lists"' "cmake_policy(SET CMP0999 NEW)" >CMakeLists.txt; cmake -B build'
log cmake-preset 'echo "{\"version\": 99}" >CMakePresets.json; '"$lists"' "" >CMakeLists.txt; cmake --preset release; echo "{\"version\": 3}" >CMakePresets.json; cmake --preset release'
log cmake-parse "$lists"' "if(TRUE)" >CMakeLists.txt; cmake -B build'
log cmake-no-cache 'mkdir build; cmake --build build'
log cmake-tests 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\nenable_testing()\nadd_test(NAME one COMMAND false)\n" >CMakeLists.txt; cmake -B build >/dev/null; cd build; ctest'
log cmake-fetch-git 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(FetchContent)\nFetchContent_Declare(dep GIT_REPOSITORY https://git.invalid/dep.git GIT_TAG v1)\nFetchContent_MakeAvailable(dep)\n" >CMakeLists.txt; cmake -B build'
log cmake-fetch-tag 'git init -q dep; git -C dep -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m a; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(FetchContent)\nFetchContent_Declare(dep GIT_REPOSITORY /srv/project/dep GIT_TAG v9.9)\nFetchContent_MakeAvailable(dep)\n" >CMakeLists.txt; cmake -B build'
log cmake-no-git 'for f in $(which -a git); do hide $f; done; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(FetchContent)\nFetchContent_Declare(dep GIT_REPOSITORY https://git.invalid/dep.git GIT_TAG v1)\nFetchContent_MakeAvailable(dep)\n" >CMakeLists.txt; cmake -B build'
log cmake-boost 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_package(Boost 1.60 REQUIRED COMPONENTS filesystem)\n" >CMakeLists.txt; cmake -B build'
log cmake-openmp 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_package(OpenMP REQUIRED)\n" >CMakeLists.txt; CXX=clang++-19 cmake -B build'
log cmake-threads 'printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nfind_package(BLAS REQUIRED)\n" >CMakeLists.txt; cmake -B build'
log cmake-write "$lists"' "" >CMakeLists.txt; mkdir build; chmod 755 .; as_nobody cmake -B build'
log cmake-insource "$lists"' "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_BINARY_DIR)
  message(FATAL_ERROR \"In-source builds are not allowed.\")
endif()" >CMakeLists.txt; cmake .'

# make, autotools, meson and their like
log make-recursive-variable 'printf "X = \$(X) -O2\nall:\n\techo \$(X)\n" >Makefile; make'
log make-error 'printf "ifndef CUDA_PATH\n\$(error CUDA_PATH is not set)\nendif\nall:\n" >Makefile; make'
log make-separator 'printf "all:\n    echo\n" >Makefile; make'
log bmake-error 'printf "all:\n\tgcc -c gone.c\n" >Makefile; bmake'
log bmake-killed 'printf "all:\n\t@kill -KILL \$\$\$\$\n" >Makefile; bmake; printf "all:\n\t@sh -c \"exit 137\"\n" >Makefile; bmake'
log bmake-gnu 'printf "ifeq (\$(A),b)\nall:\n\techo\nendif\n" >Makefile; bmake'
log autoconf-macro 'printf "AC_INIT([p], [1])\nAM_INIT_AUTOMAKE\nAC_OUTPUT\n" >configure.ac; autoconf; printf "AC_INIT([p], [1])\nLT_INIT\nm4_pattern_forbid([^LT_])\nAC_OUTPUT\n" >configure.ac; autoconf'
log autoconf-version 'printf "AC_PREREQ([9.99])\nAC_INIT([p], [1])\nAC_OUTPUT\n" >configure.ac; autoconf'
log automake-missing 'printf "#!/bin/sh\nexec ./missing aclocal-1.99\n" >run; cp /usr/share/automake-1.16/missing .; chmod 755 run missing; ./run'
log configure-library 'printf "AC_INIT([p], [1])\nAC_CHECK_LIB([of_nobody], [f], [], [AC_MSG_ERROR([libof_nobody not found])])\nAC_OUTPUT\n" >configure.ac; autoconf; ./configure'
log configure-package 'printf "AC_INIT([p], [1])\nPKG_CHECK_MODULES([GLIB], [glib-of-nobody-2.0 >= 2.50])\nAC_OUTPUT\n" >configure.ac; aclocal; autoconf; ./configure'
log configure-run 'printf "AC_INIT([p], [1])\nAC_PROG_CC\nAC_OUTPUT\n" >configure.ac; autoconf; CFLAGS=-Wl,--dynamic-linker=/nowhere ./configure'
log configure-crlf 'printf "#!/bin/sh\ncd /tmp\r\n" >b.sh; bash b.sh'
log shell-dash 'printf "if [[ 1 == 1 ]]; then :; fi\nx=(1 2)\n" >run.sh; sh run.sh'
log shell-bad-interpreter 'printf "#!/usr/bin/env python-of-nobody\n" >gen; chmod 755 gen; ./gen; printf "#!/opt/nowhere/python\n" >gen; bash -c ./gen'
log pkg-config 'pkg-config --libs libuv-of-nobody'
log pkg-config-missing 'sh -c "PATH=/srv pkg-config --libs x"; bash -c "PATH=/srv pkg-config --libs x"'
log meson-dependency 'printf "project('"'"'p'"'"', '"'"'c'"'"')\ndependency('"'"'libdrm_of_nobody'"'"', version: '"'"'>=2.4'"'"')\n" >meson.build; meson setup build'
log meson-program 'printf "project('"'"'p'"'"', '"'"'c'"'"')\nfind_program('"'"'glslang-of-nobody'"'"')\n" >meson.build; meson setup build'
log meson-library 'printf "project('"'"'p'"'"', '"'"'c'"'"')\nmeson.get_compiler('"'"'c'"'"').find_library('"'"'of_nobody'"'"')\n" >meson.build; meson setup build'
log meson-version 'printf "project('"'"'p'"'"', '"'"'c'"'"', meson_version: '"'"'>=9.9'"'"')\n" >meson.build; meson setup build'
log meson-option 'printf "project('"'"'p'"'"', '"'"'c'"'"')\n" >meson.build; meson setup build -Dno_such_option=true'
log meson-compiler 'printf "project('"'"'p'"'"', '"'"'c'"'"')\n" >meson.build; CC=/srv/nowhere/gcc meson setup build'
log meson-none 'meson setup build'
log meson-error 'printf "project('"'"'p'"'"', '"'"'c'"'"')\nerror('"'"'Endianness is not supported'"'"')\n" >meson.build; meson setup build'
log perl-module 'perl -e "use IPC::OfNobody;"'
log patch-failed 'printf "a\nb\nc\n" >f; printf -- "--- f\n+++ f\n@@ -1,3 +1,3 @@\n x\n-y\n+z\n w\n" >p.diff; patch -p0 <p.diff; git init -q; git add f; git apply p.diff'
log go-version 'rm main.cpp; mkdir m; cd m; printf "module example.invalid/m\n\ngo 1.22.3\n\ntoolchain go1.22.4\n" >go.mod; printf "package main\nfunc main() {}\n" >main.go; HOME=/srv go build'
log go-missing 'rm main.cpp; printf "package main\nimport \"example.invalid/dep\"\nfunc main() { dep.F() }\n" >main.go; printf "module example.invalid/m\n\ngo 1.19\n" >go.mod; HOME=/srv GOFLAGS=-mod=mod GOPROXY=off go build; HOME=/srv GOPROXY=off go build'
log go-network 'rm main.cpp; printf "package main\nimport \"example.invalid/dep\"\nfunc main() { dep.F() }\n" >main.go; printf "module example.invalid/m\n\ngo 1.19\n\nrequire example.invalid/dep v1.0.0\n" >go.mod; HOME=/srv GONOSUMDB=* GOFLAGS=-mod=mod GOPROXY=https://git.invalid go build'
log go-error 'rm main.cpp; printf "package main\nfunc main() { undeclared() }\n" >main.go; printf "module example.invalid/m\n\ngo 1.19\n" >go.mod; HOME=/srv go build'
log go-cgo 'rm main.cpp; printf "package main\nimport \"C\"\nfunc main() {}\n" >main.go; printf "module example.invalid/m\n\ngo 1.19\n" >go.mod; HOME=/srv CC=gcc-of-nobody CGO_ENABLED=1 go build'
log go-nomod 'rm main.cpp; printf "package main\nfunc main() {}\n" >main.go; HOME=/srv go build'

# Python and pip
setup='printf "import setuptools\nsetuptools.setup(name=\"p\", ext_modules=[setuptools.Extension(\"p\", [\"p.c\"], libraries=[])])\n" >setup.py'
pip='python3 -m pip --disable-pip-version-check --no-cache-dir'
log pip-conflict "$backend"'; printf "def prepare_metadata_for_build_wheel(folder, *_):\n    import os\n    n = os.path.basename(os.getcwd())\n    os.mkdir(f\"{folder}/{n}-1.dist-info\")\n    r = {\"a\": \"Requires-Dist: c==1\\\\n\", \"b\": \"Requires-Dist: c==2\\\\n\"}.get(n, \"\")\n    open(f\"{folder}/{n}-1.dist-info/METADATA\", \"w\").write(f\"Metadata-Version: 2.1\\\\nName: {n}\\\\nVersion: 1\\\\n{r}\")\n    return f\"{n}-1.dist-info\"\ndef build_wheel(*_): pass\n" >backend.py; for n in a b c; do mkdir $n; cp backend.py pyproject.toml $n; done; '"$pip"' install --dry-run --break-system-packages --no-index ./a ./b ./c'
log pip-offline 'printf "[build-system]\nrequires = [\"setuptools>=61\"]\nbuild-backend = \"setuptools.build_meta\"\n" >pyproject.toml; '"$pip"' wheel --no-index .'
log pip-backend 'printf "[build-system]\nrequires = []\nbuild-backend = \"mesonpy_of_nobody\"\n" >pyproject.toml; '"$pip"' wheel --no-index --no-build-isolation .'
log pip-not-a-project ''"$pip"' wheel --no-index .'
log pip-requirements ''"$pip"' install --break-system-packages -r gone.txt'
log pip-requirement-syntax 'echo "torch=2.0" >r.txt; '"$pip"' install --break-system-packages -r r.txt'
log pip-egg-info 'printf "import torch_of_nobody\nfrom setuptools import setup\nsetup()\n" >setup.py; '"$pip"' install --break-system-packages --no-index .'
log pip-not-a-wheel 'echo x >p-1-py3-none-any.whl; '"$pip"' install --break-system-packages --no-index ./p-1-py3-none-any.whl'
log setuptools-flat-layout 'mkdir a b; touch a/__init__.py b/__init__.py; printf "from setuptools import setup\nsetup(name=\"p\")\n" >setup.py; $TOOLS/python3 setup.py build'
log setuptools-no-compiler "$setup"'; touch p.c; CC=gcc-of-nobody $TOOLS/python3 setup.py build_ext'
log setuptools-no-swig 'printf "import setuptools\nsetuptools.setup(name=\"p\", ext_modules=[setuptools.Extension(\"p\", [\"p.i\"])])\n" >setup.py; touch p.i; $TOOLS/python3 setup.py build_ext --swig swig-of-nobody'
log setuptools-errno 'printf "import subprocess, setuptools\nfrom setuptools.command.build_ext import build_ext\nclass B(build_ext):\n    def run(self): subprocess.check_call([\"cmake-of-nobody\", \"..\"])\nsetuptools.setup(name=\"p\", cmdclass={\"build_ext\": B}, ext_modules=[setuptools.Extension(\"p\", [])])\n" >setup.py; $TOOLS/python3 setup.py build_ext'
log setuptools-source-gone "$setup"'; $TOOLS/python3 setup.py build_ext'
log setuptools-license 'printf "[project]\nname = \"p\"\nversion = \"1\"\nlicense = 3\n" >pyproject.toml; printf "import setuptools\nsetuptools.setup()\n" >setup.py; $TOOLS/python3 setup.py build'
log python-syntax 'printf "print \"x\"\n" >gen.py; python3 gen.py'
log python-import-name '/usr/bin/python3 -c "from collections import Mapping"'
log python-attribute '/usr/bin/python3 -c "import inspect; inspect.getargspec(len)"'
log python-export 'printf "int f(void) { return 1; }\n" >ext.c; gcc -shared -fPIC ext.c -o ext.so; /usr/bin/python3 -c "import ext"'
log cython-longintrepr 'printf "#include \"longintrepr.h\"\n" >p.c; gcc -I/usr/include/python3.11 -c p.c'
log cython-c-api 'printf "#include <Python.h>\nint f(PyThreadState *t) { return t->exc_type != 0; }\nint g(PyFrameObject *f) { return f->f_lineno; }\nvoid h(PyTypeObject *t) { t->tp_print = 0; }\n" >p.c; gcc -I/usr/include/python3.11 -c p.c'
log numpy-header 'printf "#include <numpy/arrayobject.h>\n" >p.c; gcc -c p.c'
log torch-header 'printf "#include <torch/extension.h>\n" >p.cpp; g++ -c p.cpp'
log scm-version 'printf "raise LookupError(\"setuptools-scm was unable to detect version for /srv/project.\")\n" >setup.py; python3 setup.py'

# git
repo='git init -q r; cd r; git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m a; cd ..'
log git-not-a-repository 'git describe --tags; git rev-parse HEAD'
log git-no-branch "$repo"'; git clone -b v9.9 r c; git -C r fetch . refs/heads/gone; git -C r checkout gone'
log git-no-commit "$repo"'; git -C r checkout 0123456789012345678901234567890123456789; git -C r submodule add -q ../r s 2>/dev/null; git -C r -c protocol.file.allow=always submodule add -q /srv/project/r s; git -C r update-index --cacheinfo 160000,0123456789012345678901234567890123456789,s; git -C r -c protocol.file.allow=always submodule update'
log git-lock "$repo"'; touch r/.git/index.lock; cd r; touch f; git add f'
log git-exists 'mkdir c; touch c/f; git clone https://git.invalid/p.git c'
log git-overwritten "$repo"'; cd r; echo a >f; git add f; git -c user.name=a -c user.email=a@example.invalid commit -qm f; echo b >f; git checkout HEAD~1'
log git-submodule-transport "$repo"'; git -C r submodule add /srv/project/r s'

# Rust
log cargo-no-toml 'cargo build --offline'
log cargo-offline 'mkdir src; echo "fn main() {}" >src/main.rs; printf "[package]\nname = \"p\"\nversion = \"1.0.0\"\n[dependencies]\ncrate-of-nobody = \"1\"\n" >Cargo.toml; cargo build --offline'
log cargo-lock 'mkdir src; echo "fn main() {}" >src/main.rs; printf "[package]\nname = \"p\"\nversion = \"1.0.0\"\n" >Cargo.toml; printf "version = 99\n" >Cargo.lock; cargo build --offline; rm Cargo.lock; cargo build --offline --locked'
log cargo-linker 'echo "fn main() {}" >main.rs; rustc -C linker=cc-of-nobody main.rs'
log cargo-nightly 'printf "#![feature(never_type)]\nfn main() {}\n" >main.rs; rustc main.rs'
log cargo-target 'echo "fn main() {}" >main.rs; rustc --target aarch64-unknown-linux-gnu main.rs'
log cargo-custom-build 'mkdir src; echo "fn main() {}" >src/main.rs; printf "fn main() { panic!(\"Could not find directory of OpenSSL installation\"); }\n" >build.rs; printf "[package]\nname = \"p\"\nversion = \"1.0.0\"\n" >Cargo.toml; cargo build --offline'

# The network and packages
log proxy 'export https_proxy=http://proxy.invalid:3128 http_proxy=http://proxy.invalid:3128; curl -sS https://git.invalid/; git clone https://git.invalid/p.git'
log proxy-refused 'export https_proxy=http://127.0.0.1:9; curl -sS https://git.invalid/; git clone https://git.invalid/p.git; '"$pip"' download --retries 0 torch'
log proxy-407 'python3 -c "
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((\"127.0.0.1\", 44331)); s.listen()
while True:
    c, _ = s.accept(); c.recv(4096); c.send(b\"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n\"); c.close()" & sleep 0.5
    export https_proxy=http://127.0.0.1:44331; curl -sS https://git.invalid/; git clone https://git.invalid/p.git; '"$pip"' download --retries 0 torch; kill $!'
log not-on-server 'python3 -m http.server 44332 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 0.7; curl -fsS http://127.0.0.1:44332/x.tar.gz; python3 -c "import urllib.request as u; u.urlopen(\"http://127.0.0.1:44332/x\")" 2>&1 | tail -1; printf "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\ninclude(ExternalProject)\nExternalProject_Add(dep URL http://127.0.0.1:44332/dep.tar.gz)\n" >CMakeLists.txt; cmake -B build -G Ninja >/dev/null; ninja -C build; kill $!'
log apt-unknown 'apt-get install -y libof-nobody-dev'
log apt-not-root 'as_nobody apt-get install -y zlib1g-dev'
log damaged-archive 'echo x >a.tar.gz; tar xf a.tar.gz; echo x >a.zip; unzip a.zip; python3 -c "import tarfile; tarfile.open(\"a.tar.gz\")" 2>&1 | tail -1; head -c 100 /bin/ls | gzip | head -c 50 >b.gz; gunzip b.gz'
log sha256sum 'echo x >f; echo "0000000000000000000000000000000000000000000000000000000000000000  f" | sha256sum -c -'
log java-home 'printf "#!/bin/sh\n[ -n \"\$JAVA_HOME\" ] || { echo \"ERROR: JAVA_HOME is not set and no '"'java'"' command could be found in your PATH.\"; exit 1; }\n" >mvnw; sh mvnw'

# More of the linker and of nvcc
log undefined-device-link 'printf "__device__ float scale(float x) { return x; }\n__global__ void kernel(float *x) { x[0] = scale(x[0]); }\n" >kernel.cu; nvcc -arch=sm_80 -rdc=true -c kernel.cu -o kernel.o; g++ main.cpp kernel.o -L$CUDA/lib -lcudart_static -ldl -lrt -o app'
log symbol-version 'echo "int compute() { return 1; }" >c.c; echo "V1 { global: compute; };" >v; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; printf "int compute(); int main() { return compute(); }\n" >main.c
    gcc -w main.c -L. -lcompute -Wl,-rpath,. -o app; echo "V1 { global: other; };" >v; echo "int other() { return 1; }" >c.c; gcc -shared c.c -Wl,--version-script=v -o libcompute.so; ./app'
log rpath-link 'printf "int next(void) { return 1; }\n" >a.c; mkdir d; gcc -shared -fPIC a.c -o d/liba.so; printf "int next(void); int over(void) { return next(); }\n" >b.c; gcc -shared -fPIC b.c -Ld -la -o libb.so; rm d/liba.so
    printf "int over(void); int main(void) { return over(); }\n" >m.c; gcc m.c -L. -lb -o app'
log half-operators 'printf "#include <cuda_fp16.h>\n__global__ void kernel(__half *x) { x[0] = x[1] + x[2]; }\n" >kernel.cu; nvcc -arch=sm_80 -D__CUDA_NO_HALF_OPERATORS__ -c kernel.cu -o kernel.o'
log cuda-header 'printf "#include <cusparse_of_nobody.h>\n" >a.cpp; g++ -c a.cpp; printf "#include <cub/cub.cuh>\n" >b.cpp; g++ -c b.cpp; printf "#include <cuda_runtime.h>\n" >c.cpp; g++ -c c.cpp'
