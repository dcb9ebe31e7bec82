"""Remedies of Python's, Rust's and Go's packages and of distributions: each repairs a project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, WITHOUT_RIGHTS, Case, backend, check_that_it_repairs

WHEEL = """\
import os, sys, zipfile
tag = os.environ.get("TAG", "py3-none-any")
name, version, *more = sys.argv[1:]
with zipfile.ZipFile(f"{name}-{version}-{tag}.whl", "w") as wheel:
    def add(path, text):
        info = zipfile.ZipInfo(path)
        info.external_attr = 0o100755 << 16
        wheel.writestr(info, text)
    needs = "".join(f"Requires-Dist: {one}\\n" for one in more if "/" not in one)
    for path in (one for one in more if "/" in one):
        add(path.replace("VERSION", version), open(path.rsplit("/", 1)[1], "rb").read())
    folder = f"{name}-{version}.dist-info/"
    add(folder + "METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}")
    add(folder + "WHEEL", f"Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: {tag}\\n")
    add(folder + "RECORD", "")
"""
"""`python3 wheel.py NAME VERSION [REQUIREMENT or PATH/FILE ...]` makes a wheel."""

PIP = 'export PIP_CONFIG_FILE=/dev/null PIP_ROOT_USER_ACTION=ignore; pip() { /usr/bin/python3 -m pip "$@"; }; '
ALONE = PIP + "export PIP_NO_INDEX=1; "
SERVED = PIP + (
    "python3 wheel.py p 1; mkdir -p w/simple/p; cp p-*.whl w/simple/p; rm -f port;"
    " python3 -u -m http.server 0 --bind 127.0.0.1 -d w >port 2>&1 & server=$!; trap 'kill $server' EXIT;"
    " until grep -q 'port [1-9]' port 2>/dev/null; do sleep 0.1; done;"
    " port=$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' port); "
)
"""An index of packages on `$port`. The port of the build before goes first, so that it is not taken for this one's."""


def isolated(imports: str, names: str) -> dict[str, str]:
    """A project whose build imports what pip's isolation hides, and an environment that has it."""
    table = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    return {
        "p/pyproject.toml": f"{table}[project]\nname = 'p'\nversion = '1'\n",
        "p/backend.py": backend(first=imports),
        **{f"env/{name}.py": "" for name in names.split()},
    }


CASES = [
    Case(
        "no-torch-in-isolation",
        isolated("import torch", "torch ninja"),
        ALONE + "export PYTHONPATH=$PWD/env; pip wheel $MORE ./p",
        "--no-build-isolation",
        "export MORE=--no-build-isolation; {}",
        "pip",
    ),
    Case(
        "python-module-missing",
        isolated("import module_of_nobody", "module_of_nobody"),
        ALONE + "export PYTHONPATH=$PWD/env; pip wheel $MORE ./p",
        "add --no-build-isolation",
        "export MORE=--no-build-isolation; {}  # add --no-build-isolation",
        "pip",
    ),
    Case(
        "no-pkg-resources",
        isolated("import pkg_resources", ""),
        ALONE + "pip wheel $MORE ./p",
        "build with --no-build-isolation",
        "export MORE=--no-build-isolation; {}  # build with --no-build-isolation",
        "pip",
    ),
    Case(
        "build-backend-missing",
        {
            "p/pyproject.toml": "[build-system]\nrequires = ['backend']\nbuild-backend = 'backend'\n",
            "backend.py": backend(),
            "wheel.py": WHEEL,
        },
        "python3 wheel.py backend 1 ./backend.py; " + ALONE + "export PIP_FIND_LINKS=.;"
        " pip wheel ${HOW---no-build-isolation} ./p",
        "leave out --no-build-isolation",
        "export HOW=; {}  # leave out --no-build-isolation",
        "pip",
    ),
    Case(
        "no-matching-distribution",
        {"wheel.py": WHEEL},
        "mkdir -p d; (cd d; python3 ../wheel.py p 1); " + ALONE + "pip $WHERE wheel p $MORE",
        "pip install --find-links FOLDER",
        "export MORE='--find-links d'; {}  # pip install --find-links FOLDER",
        "pip",
    ),
    Case(
        "pip-conflict",
        {"wheel.py": WHEEL},
        "for n in 1 2; do python3 wheel.py a $n c==$n; python3 wheel.py c $n; done; python3 wheel.py b 1 c==2; "
        + ALONE
        + "pip download -d d -f . ${NAMES-a==1 b==1}",
        "with both names and no versions",
        "export NAMES='a b'; {}  # with both names and no versions",
        "pip",
    ),
    Case(
        "pip-conflict",
        {"wheel.py": WHEEL},
        "for n in 1 2; do python3 wheel.py a $n c==$n; python3 wheel.py c $n; done; python3 wheel.py b 1 c==2; "
        + ALONE
        + "pip install --target d -f . $MORE a==1 b==1",
        "pip install --no-deps",
        "export MORE=--no-deps; {}  # pip install --no-deps",
        "pip",
    ),
    Case(
        "cargo-workspace",
        {
            "Cargo.toml": "[workspace]\nmembers = []\n",
            "p/Cargo.toml": "[package]\nname = 'p'\nversion = '1.0.0'\n",
            "p/src/lib.rs": "",
        },
        "cd p && cargo check --offline",
        "[workspace]",
        "printf '[workspace]\\n' >>p/Cargo.toml; {}",
        "cargo",
    ),
    Case(
        "npm-no-package",
        {"web/package.json": '{"name": "p", "version": "1.0.0"}'},
        "npm install --offline",
        "npm --prefix",
        "npm --prefix web install --offline",
        "npm",
    ),
    Case(
        "python-type-macro",
        {"p.c": "#include <Python.h>\nvoid f(PyTypeObject *t) { Py_TYPE(t) = &PyType_Type; }\n"},
        "gcc -c $(python3-config --includes) p.c",
        "Py_SET_TYPE",
        "sed -i 's/Py_TYPE(t) = &PyType_Type/Py_SET_TYPE(t, \\&PyType_Type)/' p.c; {}",
        "gcc python3-config",
    ),
    Case(
        "setup-without-command",
        {"p/setup.py": "from setuptools import setup\nsetup(name='p', version='1')\n"},
        "cd p && /usr/bin/python3 setup.py",
        "pip wheel --no-deps .",
        ALONE + "cd p && pip wheel --no-deps . --no-build-isolation",
        "pip",
    ),
    Case(
        "pip-usage",
        {"wheel.py": WHEEL},
        "python3 wheel.py p 1; " + ALONE + "pip download -d d -f . ${NAME-p=1}",
        "NAME==VERSION",
        "export NAME=p==1; {}  # NAME==VERSION",
        "pip",
    ),
    Case(
        "pip-no-project",
        {"q/" + name: text for name, text in isolated("pass", "").items()},
        ALONE + "pip wheel ${FOLDER-./q}",
        "find q/.. -maxdepth 3 -name pyproject.toml -o -maxdepth 3 -name setup.py",
        "export FOLDER=$(dirname $(find q/.. -maxdepth 3 -name pyproject.toml -o -maxdepth 3 -name setup.py)); {}",
        "pip",
    ),
    Case(
        "pip-requirements-as-name",
        {"wheel.py": WHEEL, "requirements.txt": "p==1\n"},
        "python3 wheel.py p 1; " + ALONE + "pip install --target d -f . ${WHAT-requirements.txt}",
        "pip install -r requirements.txt",
        "export WHAT='-r requirements.txt'; {}  # pip install -r requirements.txt",
        "pip",
    ),
    Case(
        "pip-archive-gone",
        {"wheel.py": WHEEL},
        "mkdir -p out dist; (cd out; python3 ../wheel.py p 1); "
        + ALONE
        + "pip install --target d ${FILE-dist/p-1-py3-none-any.whl}",
        "find . -name '*.whl' -o -name '*.tar.gz'",
        "export FILE=$(find . -name '*.whl' -o -name '*.tar.gz'); {}",
        "pip",
    ),
    Case(
        "pip-path-gone",
        {"q/" + name: text for name, text in isolated("pass", "").items()},
        ALONE + "cd ${AT-.} && pip wheel ./p",
        "cd to where the sources are",
        "export AT=q; {}  # cd to where the sources are",
        "pip",
    ),
    Case(
        "pip-requirements-file-gone",
        {"wheel.py": WHEEL, "requirements/base.txt": "p==1\n", "requirements/requirements-dev.txt": "-r base.txt\n"},
        "python3 wheel.py p 1; " + ALONE + "pip install --target d -f . -r ${FILE-requirements-dev.txt}",
        "find . -maxdepth 3 -name '*requirements*'",
        "export FILE=$(find . -maxdepth 3 -name '*requirements*' -type f); {}",
        "pip",
    ),
    Case(
        "pip-constraint-conflict",
        {"wheel.py": WHEEL, "c.txt": "c==1\n"},
        "for n in 1 2; do python3 wheel.py c $n; done; python3 wheel.py a 1 c==2; "
        + ALONE
        + "${WITHOUT-env PIP_CONSTRAINT=c.txt} python3 -m pip install --target d -f . a==1 c",
        "env -u PIP_CONSTRAINT",
        "export WITHOUT='env -u PIP_CONSTRAINT'; {}",
        "pip",
    ),
    Case(
        "wheel-not-for-here",
        {**isolated("pass", ""), "p-1-cp27-none-win32.whl": ""},
        ALONE + "pip wheel ${WHAT-./p-1-cp27-none-win32.whl}",
        "build from the source",
        "export WHAT=./p; {}  # build from the source",
        "pip",
    ),
    Case(
        "pip-uninstall",
        {"wheel.py": WHEEL, "e": "Metadata-Version: 1.0\nName: p\nVersion: 1\n"},
        "test -e v || { /usr/bin/python3 -m venv --without-pip v; python3 wheel.py p 2;"
        " for d in v/lib/python3*/site-packages; do cp e $d/p.egg-info; done; }; "
        + ALONE
        + "pip --python v/bin/python install $MORE ./p-2-py3-none-any.whl",
        "pip install --ignore-installed",
        "export MORE=--ignore-installed; {}  # pip install --ignore-installed",
        "pip",
    ),
    Case(
        "index-unreachable",
        {"wheel.py": WHEEL},
        "python3 wheel.py p 1; " + PIP + "export PIP_INDEX_URL=http://127.0.0.1:9/ PIP_RETRIES=1;"
        " mkdir -p wheels; cp p-*.whl wheels; pip install --target d $MORE p",
        "pip install --no-index --find-links wheels PACKAGE",
        "export MORE='--no-index --find-links wheels'; {}  # pip install --no-index --find-links wheels PACKAGE",
        "pip",
    ),
    Case(
        "programs-refused-in-tmp",
        {
            **isolated(
                "import os, subprocess; subprocess.run([os.environ['PATH'].split(':')[0] + '/tool'], check=True)",
                "",
            ),
            "wheel.py": WHEEL,
            "tool": "#!/bin/sh\n",
            "p/pyproject.toml": "[build-system]\nrequires = ['t']\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
            "run.sh": "mkdir -p t; mount -t tmpfs -o noexec tmpfs t; export TMPDIR=${TMPDIR-$PWD/t}; "
            + ALONE
            + "pip wheel -f . ./p\n",
        },
        "python3 wheel.py t 1 t-VERSION.data/scripts/tool; unshare -m bash run.sh",
        "mkdir -p $HOME/tmp; export TMPDIR=$HOME/tmp",
        "export HOME=$PWD; mkdir -p $HOME/tmp; export TMPDIR=$HOME/tmp; {}",
        "pip unshare",
        as_root=True,
    ),
    Case(
        "static-tls",
        {
            "a.c": '__thread char kept[9000] __attribute__((tls_model("initial-exec"))) = {1};\n'
            "char *where(void) { return kept; }\n",
        },
        "gcc -shared -fPIC a.c -o liba.so; python3 -c 'import ctypes, os; ctypes.CDLL(os.getcwd() + \"/liba.so\")'",
        "export LD_PRELOAD=",
        "export LD_PRELOAD=$PWD/liba.so; {}",
        "gcc",
    ),
    Case(
        "static-tls",
        {
            "a.c": '__thread char kept[3000] __attribute__((tls_model("initial-exec"))) = {1};\n'
            "char *where(void) { return kept; }\n",
        },
        "gcc -shared -fPIC a.c -o liba.so; python3 -c 'import ctypes, os; ctypes.CDLL(os.getcwd() + \"/liba.so\")'",
        "export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096",
        "export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096; {}",
        "gcc",
    ),
    Case(
        "native-library-missing",
        {
            "src/lib.rs": '#[link(name = "zz", kind = "static")]\nextern "C" { pub fn f() -> i32; }\n',
            "f.c": "int f(void) { return 0; }\n",
            "Cargo.toml": "[package]\nname = 'p'\nversion = '1.0.0'\nedition = '2021'\n",
        },
        "mkdir -p d; gcc -c f.c; ar rc d/libzz.a f.o; cargo build --offline",
        'export RUSTFLAGS="-L native=',
        'export RUSTFLAGS="-L native=$PWD/d"; {}',
        "cargo",
    ),
    Case(
        "rust-cast-to-mut",
        {
            "src/lib.rs": "pub fn f(x: &i32) { unsafe { *(x as *const i32 as *mut i32) = 1; } }\n",
            "Cargo.toml": "[package]\nname = 'p'\nversion = '1.0.0'\nedition = '2021'\n",
        },
        "cargo check --offline",
        "export RUSTFLAGS='-A invalid_reference_casting'",
        "export RUSTFLAGS='-A invalid_reference_casting'; {}",
        "cargo",
    ),
    Case(
        "go-build-constraints",
        {
            "go.mod": "module x\n\ngo 1.19\n",
            "m.go": 'package main\n\nimport _ "x/y"\n\nfunc main() {}\n',
            "y/y.go": "//go:build special\n\npackage y\n",
        },
        "export GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go vet $TAGS .",
        "go build -tags NAME",
        "export TAGS='-tags special'; {}  # go build -tags NAME",
        "go",
    ),
    Case(
        "go-build-constraints",
        {
            "go.mod": "module x\n\ngo 1.19\n",
            "m.go": 'package main\n\nimport _ "x/y"\n\nfunc main() {}\n',
            "y/y.go": 'package y\n\nimport "C"\n',
        },
        "export CGO_ENABLED=${CGO_ENABLED-0} GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD;"
        " go list -deps . ${WHY}",
        "CGO_ENABLED=1 with a C compiler",
        "export CGO_ENABLED=1; {}  # CGO_ENABLED=1 with a C compiler",
        "go gcc",
    ),
    Case(
        "java-heap",
        {
            "A.java": "class A { public static void main(String[] a) { "
            "long[] kept = new long[9000000]; System.exit(kept.length > 0 ? 0 : 1); } }\n",
        },
        "export JAVA_TOOL_OPTIONS=${JAVA_TOOL_OPTIONS--Xmx32m}; java A.java",
        "export JAVA_TOOL_OPTIONS=-Xmx4g",
        "export JAVA_TOOL_OPTIONS=-Xmx4g; {}",
        "java",
    ),
    Case(
        "node-heap",
        {"a.js": "const kept = []; for (let i = 0; i < 900000; i++) kept.push({i, text: 'x' + i});\n"},
        "export NODE_OPTIONS=${NODE_OPTIONS---max-old-space-size=20}; node a.js",
        "export NODE_OPTIONS=--max-old-space-size=8192",
        "export NODE_OPTIONS=--max-old-space-size=8192; {}",
        "node",
    ),
    Case(
        "node-openssl",
        {"a.js": "require('crypto').createHash('md4')\n"},
        "node a.js",
        "export NODE_OPTIONS=--openssl-legacy-provider",
        "export NODE_OPTIONS=--openssl-legacy-provider; {}",
        "node",
    ),
    Case(
        "ascii-locale",
        {"f": "naïve\n"},
        "export PYTHONCOERCECLOCALE=0 PYTHONUTF8=${PYTHONUTF8-0}; python3 -c 'open(\"f\").read()'",
        "export LC_ALL=C.UTF-8 PYTHONUTF8=1",
        "export LC_ALL=C.UTF-8 PYTHONUTF8=1; {}",
        "python3",
    ),
    Case(
        "locale-missing",
        {".keep": ""},
        "export LC_ALL=${LC_ALL/#C/xx_YY}; [ $LC_ALL = xx_YY.UTF-8 ] && LC_ALL=C.UTF-8; "
        "python3 -c 'import locale; locale.setlocale(locale.LC_ALL, \"\")'",
        "export LC_ALL=C.UTF-8",
        "export LC_ALL=C.UTF-8; {}",
        "python3",
    ),
    Case(
        "apt-clock",
        {
            "r/Packages": "",
            "r/Release": "Origin: x\nSuite: x\nCodename: x\nDate: Thu, 01 Jan 2015 00:00:00 UTC\n"
            "Valid-Until: Fri, 02 Jan 2015 00:00:00 UTC\nMD5Sum:\n d41d8cd98f00b204e9800998ecf8427e 0 Packages\n"
            "SHA256:\n e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 Packages\n",
        },
        "mkdir -m 700 -p s/lists c g; export GNUPGHOME=$PWD/g; test -e key.asc || {"
        " gpg -q --batch --passphrase '' --quick-gen-key a ed25519 sign 2>log; gpg -q --armor --export >key.asc;"
        " gpg -q --batch --clearsign -o r/InRelease r/Release; rm r/Release; gpgconf --kill all; };"
        ' echo "deb [signed-by=$PWD/key.asc] file:$PWD/r ./" >list; apt-get() { command apt-get'
        ' -o Acquire::Check-Valid-Until=true -o Acquire::Check-Date=true "$@"'
        " -o Dir::Etc::sourcelist=$PWD/list -o Dir::Etc::sourceparts=- -o Dir::State=$PWD/s -o Dir::Cache=$PWD/c; };"
        ' eval "apt-get $MORE update"',
        "apt-get -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false update",
        "export MORE='-o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false'; {}"
        "  # apt-get -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false update",
        "apt-get gpg gpgconf",
    ),
    Case(
        "pip-virtualenv-only",
        {"wheel.py": WHEEL},
        "python3 wheel.py p 1; " + ALONE + "export PIP_REQUIRE_VIRTUALENV=${PIP_REQUIRE_VIRTUALENV-1};"
        " pip install --target d ./p-1-py3-none-any.whl",
        "PIP_REQUIRE_VIRTUALENV=0",
        "export PIP_REQUIRE_VIRTUALENV=0; {}",
        "pip",
    ),
    Case(
        "numpy-headers",
        {
            "a.c": "#include <numpy/arrayobject.h>\n",
            "s/numpy/__init__.py": "def get_include():\n    return __path__[0] + '/core/include'\n",
            "s/numpy/core/include/numpy/arrayobject.h": "",
        },
        "gcc -fsyntax-only a.c",
        "export CPATH=\"$(python3 -c 'import numpy; print(numpy.get_include())')\"",
        "export PYTHONPATH=$PWD/s; export CPATH=\"$(python3 -c 'import numpy; print(numpy.get_include())')\"; {}",
        "gcc",
    ),
    Case(
        "module-shadowed",
        {
            "nobody.py": "import nobody\nprint(nobody.version)\n",
            "app.py": "import nobody\nprint(nobody.version)\n",
            "s/nobody/__init__.py": "version = 1\n",
        },
        "PYTHONPATH=$PWD/s python3 app.py",
        "rename the file of that name",
        "mv nobody.py mine.py; {}  # rename the file of that name",
        "python3",
    ),
    Case(
        "zip-before-1980",
        {"f": ""},
        "test -e once || touch -d @0 f; touch once; python3 -m zipfile -c f.zip f",
        "find . -exec touch {} +",
        "find . -exec touch {} +; {}",
        "python3",
    ),
    Case(
        "pip-file-gone",
        {"wheel.py": WHEEL, "requirements.txt": "p @ file:///croot/p_1/work\n"},
        "python3 wheel.py p 1; " + ALONE + "pip install --target d -f . -r requirements.txt",
        "replace NAME @ file:///... by NAME==VERSION",
        "sed -i 's/ @ .*/==1/' requirements.txt; {}  # replace NAME @ file:///... by NAME==VERSION",
        "pip",
    ),
    Case(
        "sdist-other-name",
        isolated("pass", ""),
        ALONE + 'pip wheel "${WHAT-other @ file://$PWD/p}"',
        "leave out NAME @",
        "export WHAT=file://$PWD/p; {}  # leave out NAME @",
        "pip",
    ),
    Case(
        "extension-not-in-source",
        {
            "p_of_nobody/__init__.py": "from p_of_nobody import _C\n",
            "site-packages/p_of_nobody/__init__.py": "from p_of_nobody import _C\n",
            "site-packages/p_of_nobody/_C.py": "",
        },
        'export PYTHONPATH=$PWD/site-packages; eval "$FIRST"; python3 -c "import p_of_nobody"',
        "cd /tmp",
        "export FIRST='cd /tmp'; {}",
        "python3",
    ),
    Case(
        "python-home-wrong",
        {".keep": ""},
        'export PYTHONHOME=/nowhere; eval "$FIRST"; python3 -c pass',
        "unset PYTHONHOME PYTHONPATH",
        "export FIRST='unset PYTHONHOME PYTHONPATH'; {}",
        "python3",
    ),
    Case(
        "text-not-utf8",
        {"setup.py": "text = open('README.md', encoding='utf-8').read()\n"},
        "test -e README.md || printf '\\377\\376x\\0' >README.md; python3 setup.py",
        "iconv -f UTF-16 -t UTF-8 ",
        "iconv -f UTF-16 -t UTF-8 README.md >new; mv new README.md; {}",
        "python3 iconv",
    ),
    Case(
        "pyproject-faulty",
        isolated("pass", ""),
        f"test -e .git || {{ {GIT} init -q; git add .; {GIT} commit -qm a; echo '[project' >>p/pyproject.toml; }}; "
        + ALONE
        + "pip wheel ./p",
        "git checkout -- pyproject.toml",
        "(cd p; git checkout -- pyproject.toml); {}",
        "pip git",
    ),
    Case(
        "stale-build-environment",
        {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\n"},
        "test -e once || { touch once; d=$PWD/pip-build-env-x/overlay/bin; mkdir -p $d; ln -s $(command -v ninja) $d;"
        " cmake -G Ninja -B build -DCMAKE_MAKE_PROGRAM=$d/ninja >log; rm -r pip-build-env-x; }; cmake -G Ninja -B"
        " build",
        "rm -rf build",
        "rm -rf build; {}",
        "cmake ninja",
    ),
    Case(
        "build-module-not-installed",
        {
            **isolated("import module_of_nobody", ""),
            "p/pyproject.toml": "[build-system]\nrequires = ['module_of_nobody']\nbuild-backend = 'backend'\n"
            "backend-path = ['.']\n",
            "wheel.py": WHEEL,
            "module_of_nobody.py": "",
        },
        "python3 wheel.py module_of_nobody 1 ./module_of_nobody.py; "
        + ALONE
        + "set -x; pip wheel -f . ${HOW---no-build-isolation} ./p",
        "leave out --no-build-isolation",
        "export HOW=; {}  # leave out --no-build-isolation",
        "pip",
    ),
    Case(
        "python-runs-program",
        {
            "setup.py": "import subprocess\ntry:\n    subprocess.run(['curl-config'], check=True)\n"
            "except OSError as err:\n    raise SystemExit(f'Could not run curl-config: {err}')\n",
            "found/curl-config": "#!/bin/sh\n",
        },
        "chmod +x found/*; export PATH=$FOUND/usr/bin:/bin; /usr/bin/python3 setup.py",
        "put the folder that has curl-config on PATH",
        "export FOUND=$PWD/found:; {}  # put the folder that has curl-config on PATH",
        "python3",
    ),
    Case(
        "npm-script-missing",
        {"package.json": '{"scripts": {"compile": "true"}}\n'},
        "export HOME=$PWD npm_config_update_notifier=false; npm run ${NAME-build}",
        "npm run lists the names that there are",
        "export HOME=$PWD NAME=$(npm run | grep -o compile); {}  # npm run lists the names that there are",
        "npm",
    ),
    Case(
        "npm-no-lock",
        {"package.json": '{"name": "p", "version": "1.0.0"}\n'},
        "export HOME=$PWD npm_config_offline=true npm_config_audit=false npm_config_update_notifier=false; npm ci",
        "npm install writes package-lock.json",
        "export HOME=$PWD npm_config_offline=true npm_config_audit=false; npm install"
        "; {}  # npm install writes package-lock.json",
        "npm",
    ),
    Case(
        "index-not-trusted",
        {"wheel.py": WHEEL},
        SERVED + "pip download -d d --index-url http://0.0.0.0:$port/simple $MORE p",
        "pip install --trusted-host 0.0.0.0",
        "export MORE='--trusted-host 0.0.0.0'; {}  # pip install --trusted-host 0.0.0.0",
        "pip",
    ),
    Case(
        "socks-missing",
        {"wheel.py": WHEEL},
        SERVED + 'export ALL_PROXY=socks5://127.0.0.1:9 all_proxy=socks5://127.0.0.1:9; eval "$FIRST";'
        " pip download -d d --index-url http://127.0.0.1:$port/simple p",
        "unset all_proxy ALL_PROXY",
        "export FIRST='unset all_proxy ALL_PROXY'; {}",
        "pip",
    ),
    Case(
        "source-tree-of-root",
        {"setup.py": "from setuptools import setup\nsetup(name='p', py_modules=[])\n"},
        WITHOUT_RIGHTS
        + "test -e once || { touch once; /usr/bin/python3 setup.py -q egg_info; chown -R 12345 p.egg-info; };"
        " user /usr/bin/python3 setup.py -q egg_info",
        "rm -rf build dist *.egg-info",
        "rm -rf build dist *.egg-info; {}",
        "setpriv pip",
        as_root=True,
    ),
    Case(
        "apt-package-unknown",
        {
            "r/Packages": "Package: tool-of-nobody\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
            "Filename: ./x.deb\nSize: 1\nSHA256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
        },
        'mkdir -p s/lists c; touch s/status; echo "deb [trusted=yes] file:$PWD/r ./" >list; apt-get() { command apt-get'
        " -o Dir::Etc::sourcelist=$PWD/list -o Dir::Etc::sourceparts=- -o Dir::State=$PWD/s"
        ' -o Dir::State::status=$PWD/s/status -o Dir::Cache=$PWD/c "$@"; };'
        ' eval "$FIRST"; apt-get install -s tool-of-nobody',
        "apt-get update",
        "export FIRST='apt-get update'; {}",
        "apt-get",
    ),
    Case(
        "tls-plain-answer",
        {"wheel.py": WHEEL},
        SERVED + "export PIP_RETRIES=0; pip download -d d --index-url ${SCHEME-https}://127.0.0.1:$port/simple p",
        "write http:// in its address",
        "export SCHEME=http; {}  # write http:// in its address",
        "pip",
    ),
    Case(
        "requirement-of-environment",
        {"wheel.py": WHEEL, "run.py": "import pkg_resources\npkg_resources.require('needed-of-nobody>=1')\n"},
        "python3 wheel.py needed_of_nobody 1; export PYTHONPATH=$PWD/d; /usr/bin/python3 run.py",
        "python -m pip install -U 'needed-of-nobody'",
        ALONE + 'python() { /usr/bin/python3 "$@"; }; PIP_FIND_LINKS=. PIP_TARGET=d'
        " python -m pip install -U 'needed-of-nobody'; {}",
        "pip",
    ),
    Case(
        "go-vendoring",
        {
            "go.mod": "module x\n\ngo 1.19\n\nrequire local.invalid/y v0.0.0\n\nreplace local.invalid/y => ./y\n",
            "m.go": 'package main\n\nimport _ "local.invalid/y"\n\nfunc main() {}\n',
            "y/go.mod": "module local.invalid/y\n\ngo 1.19\n",
            "y/y.go": "package y\n",
            "vendor/modules.txt": "",
        },
        "export GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go vet .",
        "go mod tidy; go mod vendor",
        "export GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go mod tidy; go mod vendor; {}",
        "go",
    ),
    Case(
        "go-c-sources",
        {"go.mod": "module x\n\ngo 1.19\n", "a.go": "package x\n", "m.c": "int x;\n"},
        "export CGO_ENABLED=1 GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go build",
        "//go:build ignore",
        "sed -i '1i //go:build ignore' m.c; {}",
        "go gcc",
    ),
    Case(
        "go-embed-missing",
        {
            "go.mod": "module x\n\ngo 1.19\n",
            "m.go": 'package x\n\nimport _ "embed"\n\n//go:generate touch page.html\n\n//go:embed page.html\nvar'
            " page string\n",
        },
        "export GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go list -deps . >log",
        "go generate ./...",
        "export GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go generate ./...; {}",
        "go",
    ),
    Case(
        "setup-path-from-nothing",
        {"setup.py": "import os\nroot = os.environ.get('FOO_ROOT')\nprint(os.path.join(root, 'include'))\n"},
        "python3 setup.py",
        "export NAME=/path",
        "export FOO_ROOT=/usr; {}  # export NAME=/path",
        "python3",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
