"""Remedies of compiler options, headers, linkers and loaders: each repairs a small project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, MAIN, WITHOUT_RIGHTS, C, Case, check_that_it_repairs

CASES = [
    Case(
        "missing-fpic",
        {
            "Makefile": "CFLAGS = -O2 -fno-pic\nlibb.so: a.o\n\tgcc -fPIC -shared b.c a.o -o libb.so\n"
            "clean:\n\trm -f *.o\n",
            "a.c": "int counter; int next(void) { return ++counter; }\n",
            "b.c": "int next(void); int over(void) { return next(); }\n",
        },
        "eval ${FIRST-:}; make ${FLAGS:+CFLAGS='-O2 -fPIC'}",
        "make clean; make CFLAGS='-O2 -fPIC'",
        "export FIRST='make clean' FLAGS=1; {}  # make clean; make CFLAGS='-O2 -fPIC'",
        "gcc make",
    ),
    Case(
        "string-of-two-abis",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
            "add_executable(app main.cpp)\ntarget_link_libraries(app ${CMAKE_SOURCE_DIR}/libgreet.so)\n",
            "greet.cpp": "#include <string>\nvoid greet(const std::string &) {}\nstd::string name() { return {}; }\n",
            "main.cpp": "#include <string>\nvoid greet(const std::string &);\nstd::string name();\n"
            "int main() { greet(name()); }\n",
        },
        "g++ -D_GLIBCXX_USE_CXX11_ABI=0 -shared -fPIC greet.cpp -o libgreet.so; cmake -B b $OPTIONS && cmake --build b",
        "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0 in an empty build folder",
        "export OPTIONS=-DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0; rm -r b; {}"
        "  # -DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0 in an empty build folder",
        "g++ cmake",
    ),
    Case(
        "multilib-missing",
        {"a.cpp": "#include <vector>\n"},
        "g++ ${CXXFLAGS--m32} -fsyntax-only a.cpp",
        "drop -m32",
        "export CXXFLAGS=; {}  # drop -m32",
    ),
    Case(
        "option-of-clang",
        {"a.c": MAIN},
        "${CC-gcc} -Weverything -fsyntax-only a.c",
        "export CC=clang CXX=clang++",
        "export CC=clang CXX=clang++; {}",
        "gcc clang",
    ),
    Case(
        "option-of-gcc",
        {"a.c": MAIN},
        "${CC-clang} -fconserve-stack -fsyntax-only a.c",
        "export CC=gcc CXX=g++",
        "export CC=gcc CXX=g++; {}",
        "gcc clang",
    ),
    Case(
        "clang-unknown-processor",
        {"a.c": MAIN},
        "clang ${CFLAGS--march=znver9} -fsyntax-only a.c",
        "-march=x86-64-v3",
        "export CFLAGS=-march=x86-64-v3; {}",
        "clang",
    ),
    Case(
        "output-is-folder",
        {"m.c": MAIN},
        "test -e once || mkdir app once; gcc m.c -o app",
        "move or delete the folder that is in the way",
        "rm -r app; {}  # move or delete the folder that is in the way",
        "gcc",
    ),
    Case(
        "library-not-readable",
        {"x.c": ""},
        WITHOUT_RIGHTS + "test -e libx.so || { gcc -shared x.c -o libx.so; chmod 0 libx.so; };"
        " user python3 -c \"import ctypes; ctypes.CDLL('$PWD/libx.so')\"",
        "chmod u+r ",
        "chmod u+r libx.so; {}",
        "gcc setpriv",
    ),
    Case(
        "linked-other-processor",
        {"m.c": MAIN, "Makefile": "app: b/m.o\n\tgcc b/m.o -o app\nb/m.o: m.c\n\tmkdir -p b; gcc -c m.c -o b/m.o\n"},
        "test -e once || { touch once; mkdir b; clang --target=aarch64-linux-gnu -c m.c -o b/m.o; }; make",
        "build in an empty folder",
        "rm -r b; {}  # build in an empty folder",
        "gcc clang make",
    ),
    Case(
        "sanitizer-runtime-missing",
        {"m.c": MAIN},
        "clang ${CFLAGS--fsanitize=address} -resource-dir=$PWD m.c -o app",
        "build without -fsanitize",
        "export CFLAGS=; {}  # build without -fsanitize",
        "clang",
    ),
    Case(
        "symbol-version-missing",
        {
            "CMakeLists.txt": f"{C}find_library(T t NO_DEFAULT_PATH PATHS ${{CMAKE_SOURCE_DIR}}/none)\n"
            "find_library(T t)\nlink_directories(${CMAKE_SOURCE_DIR})\nadd_executable(app m.c)\n"
            "target_link_libraries(app x ${T})\n",
            "t.c": "int opened(void) { return 0; }\n",
            "x.c": "int opened(void);\nint over(void) { return opened(); }\n",
            "m.c": "int over(void);\nint main(void) { return over(); }\n",
            "v.map": "LIBT_4.0 { *; };\n",
        },
        "mkdir -p system/lib conda/lib; gcc -shared -fPIC t.c -Wl,--version-script=v.map,-soname,libt.so"
        " -o system/lib/libt.so; gcc -shared -fPIC t.c -Wl,-soname,libt.so -o conda/lib/libt.so;"
        " gcc -shared -fPIC x.c -Lsystem/lib -lt -o libx.so; rm -rf b; export CONDA_PREFIX=$PWD/conda;"
        " eval \"cmake -G 'Unix Makefiles' -B b -DCMAKE_PREFIX_PATH='$CONDA_PREFIX;$PWD/system' $OPTIONS\" >log"
        " && cmake --build b",
        "-DCMAKE_IGNORE_PREFIX_PATH=$CONDA_PREFIX",
        "export OPTIONS='-DCMAKE_IGNORE_PREFIX_PATH=$CONDA_PREFIX'; {}",
        "gcc cmake",
    ),
    Case(
        "undefined-blas",
        {
            "m.c": "double cblas_dasum(void);\nint main(void) { return cblas_dasum() != 0; }\n",
            "x.c": "double cblas_dasum(void) { return 0; }\n",
        },
        "gcc -shared -fPIC x.c -o libopenblas.so; gcc m.c -L. $LIBS -o app",
        "-lopenblas",
        "export LIBS=-lopenblas; {}",
        "gcc",
    ),
    Case(
        "undefined-typeinfo-alone",
        {
            "a.cpp": "struct Base { virtual void f(); };\nvoid Base::f() {}\n",
            "m.cpp": "struct Base { virtual void f(); };\nstruct Own : Base { void f() {} };\nint main() { Own x; }\n",
        },
        "g++ -fno-rtti -c a.cpp && g++ $CXXFLAGS m.cpp a.o -o app",
        "CXXFLAGS=-fno-rtti",
        "export CXXFLAGS=-fno-rtti; {}",
    ),
    Case(
        "test-flag-unknown",
        {"CMakeLists.txt": C},
        "export LDFLAGS=${LDFLAGS--fno-such-thing}; rm -rf b; cmake -B b",
        "ake -fno-such-thing out of CFLAGS, CXXFLAGS, LDFLAGS",
        "export LDFLAGS=; {}  # ake -fno-such-thing out of CFLAGS, CXXFLAGS, LDFLAGS",
        "cmake",
    ),
    Case(
        "icu-wants-newer",
        {
            "Makefile": "CXXFLAGS = -std=c++14\na.o: a.cpp\n\tg++ $(CXXFLAGS) -Iinclude -c a.cpp\n",
            "a.cpp": "#include <unicode/char16ptr.h>\n",
            "include/unicode/char16ptr.h": "#include <string_view>\nstd::u16string_view kept;\n",
        },
        "make",
        "make CXXFLAGS='-O2 -std=c++17'",
        "make CXXFLAGS='-O2 -std=c++17'",
        "g++ make",
    ),
    Case(
        "include-folder-missing",
        {"a.cpp": "#include <of_nobody/x.h>\n", "s/include/of_nobody/x.h": ""},
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always;"
        f" test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q;"
        f" git submodule --quiet add $PWD/s third_party/s; git add a.cpp; {GIT} commit -qm a; git clone -q . c; }};"
        ' cd c; eval "$FIRST"; g++ -Wmissing-include-dirs -I$PWD/third_party/s/include -fsyntax-only a.cpp',
        "git submodule update --init --recursive",
        "export FIRST='git submodule update --init --recursive'; {}",
        "g++ git",
    ),
    Case(
        "compiler-segfault",
        {"a.py": "print('int x = ' + '(' * 60000 + '1' + ')' * 60000 + ';')\n"},
        "python3 a.py >a.c; ulimit -c 0; ulimit -s ${STACK-2000}; gcc -fsyntax-only a.c",
        "ulimit -s unlimited",
        "STACK=$(sed 's/.* //' <<<'ulimit -s unlimited'); {}",
        "gcc",
    ),
    Case(
        "illegal-instruction",
        {
            "Makefile": "all: app\n\t./app\napp: a.c\n\tgcc $(CFLAGS) a.c -o app\n",
            "a.c": "#ifdef __AVX512ER__\n#include <immintrin.h>\nvoid f(void *p)"
            " { _mm512_storeu_pd(p, _mm512_exp2a23_pd(_mm512_loadu_pd(p))); }\n#else\nvoid f(void *p) {}\n#endif\n"
            "int main(void) { double x[8] = {0}; f(x); return 0; }\n",
        },
        "ulimit -c 0; rm -f app; export CFLAGS=${CFLAGS--march=knl}; make",
        "uild without -march=native",
        "export CFLAGS=; {}  # uild without -march=native",
        "gcc make",
    ),
    Case(
        "header-removed",
        {"a.c": "#include <xlocale.h>\nlocale_t x;\n"},
        "gcc -fsyntax-only a.c",
        "xlocale.h becomes locale.h",
        "sed -i s/xlocale.h/locale.h/ a.c; {}  # xlocale.h becomes locale.h",
        "gcc",
    ),
    Case(
        "header-removed",
        {"a.c": "#include <sys/sysctl.h>\n" + MAIN},
        "gcc -fsyntax-only a.c",
        "delete the #include",
        "sed -i '/sysctl/d' a.c; {}  # delete the #include",
        "gcc",
    ),
    Case(
        "library-not-installed-yet",
        {
            "CMakeLists.txt": f"{C}add_library(ctranslate2 SHARED x.c)\ninstall(TARGETS ctranslate2 DESTINATION lib)\n"
            "install(FILES x.h DESTINATION include)\n",
            "x.c": "int next(void) { return 0; }\n",
            "x.h": "",
            "m.c": "int next(void);\nint main(void) { return next(); }\n",
        },
        "export HOME=$PWD/home; mkdir -p binding; cp m.c binding; cd binding; gcc m.c -lctranslate2 -o app && ./app",
        "cmake -S . -B build -DCMAKE_INSTALL_PREFIX=$HOME/ctranslate2; cmake --build build -j 4 --target install",
        "export HOME=$PWD/home;"
        " cmake -S . -B build -DCMAKE_INSTALL_PREFIX=$HOME/ctranslate2; cmake --build build -j 4 --target install;"
        " export LIBRARY_PATH=$HOME/ctranslate2/lib LD_LIBRARY_PATH=$HOME/ctranslate2/lib"
        " CPATH=$HOME/ctranslate2/include"
        "; {}",
        "gcc cmake",
    ),
    Case(
        "opencv-c-constants",
        {
            "a.cpp": '#include "cv.h"\nint x = CV_BGR2GRAY, y = CV_LOAD_IMAGE_COLOR, z = CV_CAP_PROP_FPS;\n'
            "int u = CV_FOURCC('a', 'b'), v = CV_WINDOW_AUTOSIZE, w = CV_VERSION_MAJOR;\n",
            "cv.h": "enum { CV_VERSION_MAJOR = 4 };\nnamespace cv {\n"
            "enum { COLOR_BGR2GRAY, IMREAD_COLOR, CAP_PROP_FPS, WINDOW_AUTOSIZE };\n"
            "struct VideoWriter { static int fourcc(char a, char b) { return a + b; } };\n}\n",
        },
        "g++ -fsyntax-only a.cpp",
        r"s/\bCV_(BGR|RGB|GRAY|HSV|YUV)/cv::COLOR_\1/g",
        r"grep -rlE '\bCV_' --include='*.cpp' --include='*.h' --include='*.hpp' . | xargs sed -i -E "
        r"'s/\bCV_(BGR|RGB|GRAY|HSV|YUV)/cv::COLOR_\1/g; s/\bCV_LOAD_IMAGE_/cv::IMREAD_/g;"
        r" s/\bCV_CAP_PROP_/cv::CAP_PROP_/g; s/\bCV_FOURCC\b/cv::VideoWriter::fourcc/g;"
        r" s/\bCV_WINDOW_/cv::WINDOW_/g'; {}",
    ),
    Case(
        "header-of-another-processor",
        {
            "Makefile": "USE_NEON = 1\na.o: a.c\n\tgcc -DUSE_NEON=$(USE_NEON) -c a.c\n",
            "a.c": "#if USE_NEON\n#include <arm_neon.h>\n#endif\n",
        },
        "make $OPTIONS",
        "USE_NEON=0",
        "export OPTIONS=USE_NEON=0; {}",
        "gcc make",
    ),
    Case(
        "static-library-incomplete",
        {
            "x.c": "#include <math.h>\ndouble lifted(double x) { return pow(x, x); }\n",
            "m.c": "double lifted(double);\nint main(int n, char **v) { return lifted(n) != 1; }\n",
            "d/x.pc": "Name: x\nDescription: x\nVersion: 1\nLibs: -Llib -lx\nLibs.private: -lm\n",
        },
        "mkdir -p lib; gcc -c x.c && ar rc lib/libx.a x.o; export PKG_CONFIG_PATH=$PWD/d;"
        ' eval "$FIRST"; gcc m.c ${LIBS-$(pkg-config --libs x)} -o app'
        " || { echo 'ERROR: libx not found using pkg-config'; false; }",
        'LIBS="$(pkg-config --static --libs x)"',
        "export FIRST='LIBS=\"$(pkg-config --static --libs x)\"'; {}",
        "gcc pkg-config",
    ),
    Case(
        "static-library-order",
        {
            "s.c": "#include <math.h>\nint sum(int n);\nint score(int n) { return sum(n) + pow(n, n); }\n",
            "c.c": "int sum(int n) { return n; }\n",
            "m.c": "int score(int n);\nint main(int n, char **v) { return score(n) != 2; }\n",
            "Makefile": "LDLIBS = -lm -lcrc -lstore\napp: m.c\n\t$(CC) -L. m.c $(LDLIBS) -o app\n",
        },
        'gcc -c s.c c.c && ar rc libstore.a s.o && ar rc libcrc.a c.o; eval "${FIRST-make}"',
        "make LDLIBS='-lstore -lcrc -lstore -lm'",
        "export FIRST=\"make LDLIBS='-lstore -lcrc -lstore -lm'\"; {}",
        "gcc make",
    ),
    Case(
        "archive-member-missing",
        {
            "Makefile": "build/lib.a: build/compiled\n\tar rc build/lib.a build/a.o\n"
            "build/compiled: a.c\n\tmkdir -p build; gcc -c a.c -o build/a.o; touch build/compiled\n",
            "a.c": "",
        },
        "test -e once || { make && rm build/a.o build/lib.a; touch once; } >log; make",
        "an empty build folder",
        "rm -r build; {}  # an empty build folder",
        "gcc make",
    ),
    Case(
        "loaded-wrong-file",
        {
            "Makefile": "all: libx.so\nlibx.so:\n\techo 'int x;' | gcc -shared -xc - -o libx.so\n",
            "libx.so": "a pointer of LFS\n",
        },
        "make && python3 -c \"import ctypes; ctypes.CDLL('$PWD/libx.so')\"",
        "Delete it and install or build it again",
        "rm libx.so; {}  # Delete it and install or build it again",
        "gcc make",
    ),
    Case(
        "library-is-text",
        {"m.c": MAIN, "libx.a": "version https://git-lfs.invalid/spec/v1\n", "x.c": "int x;\n"},
        "gcc m.c -L. -lx -o app",
        "fetch the file again",
        "rm libx.a; gcc -c x.c; ar rc libx.a x.o; {}  # fetch the file again",
        "gcc",
    ),
    Case(
        "openssl-shadowed",
        {"x.c": "int x;\n", "v.map": "V_1 { *; };\n"},
        "mkdir -p d; gcc -shared -fPIC x.c -Wl,--version-script=v.map,-soname,libssl.so.3 -o d/libssl.so.3;"
        ' export LD_LIBRARY_PATH=$PWD/d; eval "$FIRST"; /usr/bin/python3 -c "import ssl"',
        "unset LD_LIBRARY_PATH",
        "export FIRST='unset LD_LIBRARY_PATH'; {}",
        "gcc",
    ),
    Case(
        "library-version-missing",
        {
            "x.c": "int next(void) { return 0; }\n",
            "old.map": "FOO_1 { *; };\n",
            "new.map": "FOO_2 { *; };\n",
            "m.c": "int next(void);\nint main(void) { return next(); }\n",
        },
        "for n in old new; do mkdir -p $n; gcc -shared -fPIC x.c -Wl,--version-script=$n.map -o $n/libfoo.so; done;"
        " gcc m.c -Lnew -lfoo -Wl,-rpath,$PWD/new,--enable-new-dtags -o app;"
        ' export LD_LIBRARY_PATH=$PWD/old; eval "$FIRST"; ./app',
        "unset LD_LIBRARY_PATH",
        "export FIRST='unset LD_LIBRARY_PATH'; {}",
        "gcc",
    ),
    Case(
        "objects-not-compiled",
        {
            "Makefile": "build/app: build/compiled\n\tgcc build/m.o -o build/app\n"
            "build/compiled: m.c\n\tmkdir -p build; gcc -c m.c -o build/m.o; touch build/compiled\n",
            "m.c": MAIN,
        },
        "test -e once || { make && rm build/m.o build/app; touch once; } >log; make",
        "elete the build folder and build again",
        "rm -r build; {}  # delete the build folder and build again",
        "gcc make",
    ),
    Case(
        "loaded-symbol-of-package",
        {
            "new.c": "int png_create_read_struct(void) { return 0; }\n",
            "old.c": "int x;\n",
            "m.c": "int png_create_read_struct(void);\nint main(void) { return png_create_read_struct(); }\n",
        },
        "for n in old new; do mkdir -p $n; gcc -shared -fPIC $n.c -o $n/libpng_of_nobody.so; done;"
        " gcc m.c -Lnew -lpng_of_nobody -Wl,-rpath,$PWD/new,--enable-new-dtags -o app;"
        ' export LD_LIBRARY_PATH=$PWD/old; eval "$FIRST"; ./app',
        "unset LD_LIBRARY_PATH",
        "export FIRST='unset LD_LIBRARY_PATH'; {}",
        "gcc",
    ),
    Case(
        "cpp14-not-applied",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\nadd_library(a OBJECT"
            " a.cpp)\n"
            "if(NOT CMAKE_CXX_STANDARD)\n  set_target_properties(a PROPERTIES CXX_STANDARD 11)\nendif()\n",
            "a.cpp": "auto next(int n) { return n + 1; }\n",
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS >log; cmake --build b",
        "-DCMAKE_CXX_STANDARD=17",
        "export OPTIONS=-DCMAKE_CXX_STANDARD=17; {}",
    ),
    Case(
        "libc-name-gone",
        {
            "a.c": "#include <stdio.h>\n#include <string.h>\nconst char *say(int n) { return sys_errlist[n]; }\n",
        },
        "gcc -c a.c",
        "strerror(n) for sys_errlist[n]",
        r"sed -i 's/sys_errlist\[n\]/strerror(n)/' a.c; {}  # strerror(n) for sys_errlist[n]",
        "gcc",
    ),
    Case(
        "gnulib-older-than-libc",
        {
            "lib/freadahead.c": '#include <stdio.h>\n#include "stdio-impl.h"\n#if defined _IO_ftrylockfile\n'
            "int f(FILE *fp) { return fp->_flags & _IO_IN_BACKUP; }\n#else\n"
            '#error "Please port gnulib freadahead.c to your platform! Look at the definition of fflush"\n#endif\n',
            "lib/stdio-impl.h": "",
        },
        "cat lib/freadahead.c >log; gcc -c lib/freadahead.c",
        "sed -i 's/IO_ftrylockfile/IO_EOF_SEEN/' lib/*.c",
        "sed -i 's/IO_ftrylockfile/IO_EOF_SEEN/' lib/*.c; echo '#define _IO_IN_BACKUP 0x100' >> lib/stdio-impl.h; {}",
        "gcc",
    ),
    Case(
        "swig-not-found",
        {
            "Makefile": "SWIG = $(notdir $(wildcard found/swig))\nm.c: m.i\n\tPATH=$(CURDIR)/found:$$PATH $(SWIG)"
            " -python -o m.c m.i\n",
            "m.i": "",
        },
        "make",
        "configure again",
        "mkdir found; printf '#!/bin/sh\\n' >found/swig; chmod +x found/swig; {}  # configure again",
        "make",
    ),
    Case(
        "swig-option",
        {"m.i": "%module m\n"},
        "swig ${SWIG_FLAGS--doxygen-of-nobody} -python m.i",
        "drop the option",
        "export SWIG_FLAGS=; {}  # drop the option",
        "swig",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
