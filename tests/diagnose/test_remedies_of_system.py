"""Remedies about files, limits, caches, git and the network: each repairs a project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, LOCAL, Case, check_that_it_repairs

FETCHED = {"Makefile": "all: f.tar.gz\n\tsha256sum -c sums && tar xzf f.tar.gz\nf.tar.gz:\n\tcp d/f.tar.gz .\n"}
ARCHIVE = "mkdir -p d; test -e d/f.tar.gz || tar czf d/f.tar.gz Makefile; "
SUBMODULE = (
    f"test -e c || {{ {GIT} init -q s; {GIT} -C s commit -q --allow-empty -m a; {GIT} init -q p;"
    f" cd p; {GIT} submodule --quiet add $PWD/../s t; {GIT} commit -qm a; cd ..; {GIT} clone -q p c; }}; "
)

MERGE_IN_CONFLICT = (
    f'git() {{ command {GIT} "$@"; }}; test -e .git || {{ git init -q; git add a.c; git commit -qm a;'
    " git checkout -qb b;"
    " echo 'int x = 2;' >a.c; git commit -qam b; git checkout -q main; echo 'int x = 3;' >a.c; git commit -qam c;"
    " git merge b; } >log; gcc -fsyntax-only a.c"
)

DEBIAN_SOURCES = {
    "p/debian/control": "Source: p\nMaintainer: x <x@x.invalid>\n\nPackage: p\nArchitecture: all\nDescription: x\n",
    "p/debian/changelog": "p (1-1) unstable; urgency=low\n\n  * x\n\n"
    " -- x <x@x.invalid>  Thu, 01 Jan 2026 00:00:00 +0000\n",
    "p/debian/source/format": "3.0 (quilt)\n",
    "p/f": "one\n",
}

CASES = [
    Case(
        "git-authentication",
        {".keep": ""},
        LOCAL + SUBMODULE + "cd c; git submodule init -q; test -e ../moved || { mv ../s ../moved;"
        ' sed -i "s|= .*/s$|= $PWD/../moved|" .gitmodules; }; eval "$FIRST"; git submodule update',
        "git submodule sync",
        "export FIRST='git submodule sync'; {}",
        "git",
    ),
    Case(
        "submodule-commit-gone",
        {".keep": ""},
        LOCAL + SUBMODULE + f"test -e late || {{ {GIT} clone -q s fork; {GIT} -C fork commit -q --allow-empty -m b;"
        f" git -C fork rev-parse HEAD >late; {GIT} -C c update-index --cacheinfo 160000,$(cat late),t; }}; cd c;"
        ' eval "$FIRST"; git submodule update --init',
        "git config -f .gitmodules submodule.NAME.url ADDRESS; git submodule sync",
        "export FIRST='git config -f .gitmodules submodule.t.url $PWD/../fork; git submodule sync'; {}"
        "  # git config -f .gitmodules submodule.NAME.url ADDRESS; git submodule sync",
        "git",
    ),
    Case(
        "git-no-tags",
        {".keep": ""},
        f"test -e c || {{ {GIT} init -q a; {GIT} -C a commit -qm a --allow-empty; {GIT} -C a tag v1.0;"
        f" {GIT} -C a commit -qm b --allow-empty; git clone -q --depth 1 file://$PWD/a c; }}; cd c;"
        ' eval "$FIRST"; git describe --tags',
        "git fetch --unshallow --tags",
        "export FIRST='git fetch --unshallow --tags'; {}",
        "git",
    ),
    Case(
        "make-jobserver-kind",
        {"Makefile": "all:\n"},
        'export MAKEFLAGS=${MAKEFLAGS--j2 --jobserver-auth=fifo:none}; eval "$FIRST"; make',
        "unset MAKEFLAGS",
        "export FIRST='unset MAKEFLAGS'; {}",
        "make",
    ),
    Case(
        "mode-not-changed",
        {"build/tool": "one\n"},
        'chmod 777 . build; eval "$FIRST"; cd build; setpriv --reuid=12345 --regid=12345 --clear-groups chmod +x tool',
        "sudo chown -R $USER on the build folder",
        "export FIRST='chown -R 12345 build'; {}  # sudo chown -R $USER on the build folder",
        "setpriv",
        as_root=True,
    ),
    Case(
        "sandbox-path",
        {".keep": ""},
        "bwrap --ro-bind / / --bind $PWD/out /tmp true",
        "mkdir -p",
        "mkdir -p out; {}",
        "bwrap",
        as_root=True,
    ),
    Case(
        "git-store-damaged",
        {"f": "one\n"},
        f"test -e .git || {{ {GIT} init -q; git add f; {GIT} commit -qm a; : >.git/index;"
        " printf '%40s' >.git/index; }; git status",
        "rm .git/index; git reset",
        "rm .git/index; git reset; {}",
        "git",
    ),
    Case(
        "git-store-damaged",
        {".keep": ""},
        f"test -e c || {{ {GIT} init -q a; echo one >a/f; git -C a add f; {GIT} -C a commit -qm a;"
        " git clone -q file://$PWD/a c; cd c; for pack in .git/objects/pack/*.pack; do mv $pack ../p; done;"
        " rm -f .git/objects/pack/*; git unpack-objects -q <../p; f=$(git rev-parse HEAD:f);"
        " f=.git/objects/${f:0:2}/${f:2}; chmod +w $f; : >$f; cd ..; }; cd c; git checkout -f HEAD~0 -- . && git fsck",
        "git fetch --refetch",
        "find c/.git/objects -size 0 -delete; (cd c; git fetch --refetch); {}",
        "git",
    ),
    Case(
        "damaged-archive",
        {**FETCHED, "f.tar.gz": "<html>\n"},
        ARCHIVE + ": >sums; make -s ${X-} -o sums || tar xzf f.tar.gz",
        "Delete it",
        "rm f.tar.gz; {}  # Delete it",
        "make",
    ),
    Case(
        "checksum-mismatch",
        {**FETCHED, "f.tar.gz": "cut\n"},
        ARCHIVE + "(cd d; sha256sum f.tar.gz) >sums; make",
        "Delete the file and fetch it again",
        "rm f.tar.gz; {}  # Delete the file and fetch it again",
        "make",
    ),
    Case(
        "ccache-permission",
        {"a.c": "int x;\n"},
        "export CCACHE_DIR=${CCACHE_DIR-/proc/cache}; ccache gcc -c a.c",
        "export CCACHE_DIR=$HOME/.ccache",
        "export HOME=$PWD; export CCACHE_DIR=$HOME/.ccache; {}",
        "ccache",
    ),
    Case(
        "ccache-permission",
        {"a.c": "int x;\n"},
        "export CCACHE_DIR=/proc/cache; ccache gcc -c a.c",
        "CCACHE_DISABLE=1",
        "export CCACHE_DISABLE=1; {}",
        "ccache",
    ),
    Case(
        "ccache-compiler",
        {"a.cpp": "int x;\n"},
        "ccache g++-of-nobody -c a.cpp",
        "export CCACHE_COMPILER=/usr/bin/g++",
        "export CCACHE_COMPILER=/usr/bin/g++; {}",
        "ccache",
    ),
    Case(
        "distcc-hosts",
        {"a.c": "int x;\n"},
        "export DISTCC_FALLBACK=0 DISTCC_DIR=$PWD DISTCC_HOSTS=${DISTCC_HOSTS-127.0.0.1:9}; distcc gcc -c a.c",
        "export DISTCC_HOSTS=localhost",
        "export DISTCC_HOSTS=localhost; {}",
        "distcc",
    ),
    Case(
        "command-not-found",
        {"bin/tool-of-nobody": "#!/bin/sh\n"},
        "chmod +x bin/*; tool-of-nobody",
        "put its folder on PATH",
        "export PATH=$PWD/bin:$PATH; {}  # put its folder on PATH",
        "bash",
    ),
    Case(
        "crashed-in-step",
        {
            "Makefile": "all: a\n\t./a\na: a.c\n\tgcc a.c -o a\n",
            "a.c": "int main(void) { volatile char kept[20000000]; kept[0] = 0; return kept[0]; }\n",
        },
        "ulimit -S -c 0; ulimit -S -s ${STACK-8192}; make",
        "ulimit -s unlimited",
        "STACK=$(sed 's/.* //' <<<'ulimit -s unlimited'); {}",
        "gcc make",
    ),
    Case(
        "step-timed-out",
        {"Makefile": "all:\n\ttimeout $(LIMIT) sleep 0.05\n"},
        "make LIMIT=${LIMIT-0.01}",
        "timeout 2h COMMAND",
        "export LIMIT=2h; {}  # timeout 2h COMMAND",
        "make",
    ),
    Case(
        "file-size-limit",
        {"Makefile": "all:\n\tgcc -E -dM -x c /dev/null -o out\n"},
        "ulimit -S -c 0; ulimit -S -f ${SIZE-1}; make",
        "ulimit -f unlimited",
        "SIZE=$(sed 's/.* //' <<<'ulimit -f unlimited'); {}",
        "gcc make",
    ),
    Case(
        "memory-refused",
        {"a.cpp": "#include <algorithm>\n"},
        "ulimit -S -v ${MEMORY-60000}; g++ -c a.cpp",
        "ulimit -v (want: unlimited)",
        "MEMORY=unlimited; {}  # ulimit -v (want: unlimited)",
    ),
    Case(
        "object-damaged",
        {
            "build.ninja": "rule c\n command = gcc -c a.c -o a.o\nrule l\n command = gcc a.o -o app\n"
            "build a.o: c a.c\nbuild app: l a.o\n",
            "a.c": "int main(void) { return 0; }\n",
        },
        "test -e .ninja_log || { ninja; head -c 200 a.o >b; touch -r a.o b; mv b a.o; rm app; } >log; ninja",
        "rm a.o",
        "rm a.o; {}",
        "ninja gcc",
    ),
    Case(
        "object-damaged",
        {
            "build.ninja": "rule c\n command = gcc -c a.c -o a.o\nrule l\n command = gcc a.o -o app\n"
            "build a.o: c a.c\nbuild app: l a.o\n",
            "a.c": "int main(void) { return 0; }\n",
        },
        "test -e .ninja_log || { ninja; head -c 200 a.o >b; touch -r a.o b; mv b a.o; rm app; } >log; ninja",
        "ninja -t clean",
        "ninja -t clean; {}",
        "ninja gcc",
    ),
    Case(
        "clock-skew",
        {"Makefile": "all: a\na: b\n\ttouch a\n", "b": ""},
        "test -e new || { touch new; touch -d '1 hour' b; }; make 2>&1 | tee log; ! grep -q skew log",
        "find . -newermt now -exec touch {} +",
        "find . -newermt now -exec touch {} +; {}",
        "make",
    ),
    Case(
        "tar-ownership",
        {"f": "one\n"},
        "test -e f.tar || tar --owner=12345 --group=12345 -cf f.tar f; unshare -r tar xf f.tar",
        "export TAR_OPTIONS=--no-same-owner",
        "export TAR_OPTIONS=--no-same-owner; {}",
        "unshare tar",
    ),
    Case(
        "folder-in-use",
        {"run.sh": 'mkdir -p d; mount -t tmpfs tmpfs d; eval "$FIRST"; rm -r d\n'},
        "unshare -m bash run.sh",
        "unmount it",
        "export FIRST='umount d'; {}  # unmount it",
        "unshare",
        as_root=True,
    ),
    Case(
        "read-only",
        {"run.sh": 'mkdir -p d; mount -t tmpfs -o ro tmpfs d; eval "$FIRST"; mkdir d/build\n'},
        "unshare -m bash run.sh",
        "mount it writable",
        "export FIRST='mount -o remount,rw d'; {}  # mount it writable",
        "unshare",
        as_root=True,
    ),
    Case(
        "cross-device-link",
        {
            "run.sh": "mkdir -p d h; mount -t tmpfs tmpfs d; python3 -c 'import os, sys\n"
            'open(sys.argv[1] + "/a", "w"); os.rename(sys.argv[1] + "/a", "h/a")\' ${TMPDIR-d}\n'
        },
        "unshare -m bash run.sh",
        'mkdir -p "$(pip cache dir)/tmp"; export TMPDIR="$(pip cache dir)/tmp"',
        'export PIP_CACHE_DIR=$PWD/cache; mkdir -p "$(pip cache dir)/tmp"; export TMPDIR="$(pip cache dir)/tmp"; {}',
        "unshare pip",
        as_root=True,
    ),
    Case(
        "text-file-busy",
        {"a.c": "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"},
        "test -e busy || { gcc a.c -o busy; ./busy >/dev/null 2>&1 & echo $! >pid; until [ -s pid ]; do :; done;"
        " until [ /proc/$(cat pid)/exe -ef busy ]; do :; done; }; "
        "if kill -0 $(cat pid) 2>/dev/null; then ! cp a.c busy; fi && ! kill -0 $(cat pid) 2>/dev/null",
        "End what runs from that folder",
        "kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do :; done; true # End what runs from that folder",
        "gcc",
    ),
    Case(
        "socket-path-too-long",
        {
            "a.py": "import socket, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
            "    socket.socket(socket.AF_UNIX).bind(folder + '/socket')\n"
        },
        "export TMPDIR=${TMPDIR-$PWD/$(printf '%0120d' 0)}; mkdir -p $TMPDIR; python3 a.py",
        "export TMPDIR=/tmp",
        "export TMPDIR=/tmp; {}",
        "python3",
    ),
    Case(
        "mounted-noexec",
        {
            "run.sh": 'mkdir -p t; mount -t tmpfs -o noexec tmpfs t; mount | grep "$PWD/t"; export'
            " TMPDIR=${TMPDIR-$PWD/t};"
            " printf '#!/bin/sh\\n' >$TMPDIR/tool; chmod +x $TMPDIR/tool; $TMPDIR/tool\n"
        },
        "unshare -m bash run.sh",
        "mkdir -p $HOME/tmp; export TMPDIR=$HOME/tmp",
        "export HOME=$PWD; mkdir -p $HOME/tmp; export TMPDIR=$HOME/tmp; {}",
        "unshare",
        as_root=True,
    ),
    Case(
        "path-with-spaces",
        {
            "Makefile": "all:\n\t@case \"$$PATH\" in *' '*) echo 'Your PATH contains spaces, TABs, and/or newline (\\n)"
            " characters.'; exit 1;; esac\n"
        },
        "export PATH=$PATH${MORE-:/mnt/c/Program Files}; make",
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export MORE=; {}",
        "make",
    ),
    Case(
        "git-identity",
        {".keep": ""},
        "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q r; git -C r -c user.useConfigOnly=true commit"
        " --allow-empty -m a",
        "git config --global user.name build && git config --global user.email build@example.invalid",
        "export HOME=$PWD; git config --global user.name build && git config --global user.email"
        " build@example.invalid; {}",
        "git",
    ),
    Case(
        "git-identity",
        {".keep": ""},
        "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q r; git -C r -c user.useConfigOnly=true commit"
        " --allow-empty -m a",
        "export GIT_COMMITTER_NAME=build GIT_COMMITTER_EMAIL=build@example.invalid GIT_AUTHOR_NAME=build"
        " GIT_AUTHOR_EMAIL=build@example.invalid",
        "export GIT_COMMITTER_NAME=build GIT_COMMITTER_EMAIL=build@example.invalid GIT_AUTHOR_NAME=build"
        " GIT_AUTHOR_EMAIL=build@example.invalid; {}",
        "git",
    ),
    Case(
        "git-am-left",
        {"f": "one\n"},
        f'git() {{ command {GIT} "$@"; }}; test -e .git || {{ git init -q; git add f; git commit -qm a; echo two >f;'
        " git commit -qam b; git format-patch -1 --stdout >x.patch; git am -q x.patch; git reset -q --hard HEAD~1; }"
        " 2>log; git am -q x.patch",
        "git am --abort",
        f'git() {{ command {GIT} "$@"; }}; git am --abort; {{}}',
        "git",
    ),
    Case(
        "submodule-gitdir-gone",
        {".keep": ""},
        LOCAL + f"test -e c || {{ {GIT} init -q s; {GIT} -C s commit -q --allow-empty -m a; {GIT} init -q p; cd p;"
        f" git submodule --quiet add $PWD/../s t; {GIT} commit -qm a; cd ..; git clone -q --recurse-submodules p c;"
        ' rm -r c/.git/modules/t; }; cd c; eval "$FIRST"; git -C t log --format=%s',
        "git submodule deinit -f PATH && git submodule update --init --recursive PATH",
        "export FIRST='git submodule deinit -f t && git submodule update --init --recursive t'; {}"
        "  # git submodule deinit -f PATH && git submodule update --init --recursive PATH",
        "git",
    ),
    Case(
        "fork-refused",
        {"Makefile": "all:\n\tsleep 0\n"},
        "chmod 777 .; setpriv --reuid=12345 --regid=12345 --clear-groups bash -c 'ulimit -Su 0; eval \"$FIRST\"; make'",
        "ulimit -Su hard",
        "export FIRST='ulimit -Su hard'; {}",
        "setpriv make",
        as_root=True,
    ),
    Case(
        "empty-download",
        {"Makefile": "all: f\n\tsha256sum -c sums || { sha256sum f; false; }\nf:\n\techo x >f\n", "f": ""},
        'echo "$(echo x | sha256sum | cut -c-64)  f" >sums; make',
        "Delete the file and fetch it again",
        "rm f; {}  # Delete the file and fetch it again",
        "make",
    ),
    Case(
        "debian-source",
        DEBIAN_SOURCES,
        f"test -e p/.git || {{ tar czf p_1.orig.tar.gz --exclude debian p; cd p; {GIT} init -q; git add .;"
        f' {GIT} commit -qm a; echo two >made; cd ..; }}; cd p; eval "$FIRST"; dpkg-source -b .',
        "git clean -fdx",
        "export FIRST='git clean -fdx'; {}",
        "git dpkg-source",
    ),
    Case(
        "conflict-marker",
        {"a.c": "int x = 1;\n"},
        MERGE_IN_CONFLICT,
        "git merge --abort",
        "git merge --abort; {}",
        "git gcc",
    ),
    Case(
        "conflict-marker",
        {"a.c": "int x = 1;\n"},
        MERGE_IN_CONFLICT,
        "git checkout --theirs",
        "git checkout --theirs a.c; {}",
        "git gcc",
    ),
    Case(
        "debian-orig-missing",
        DEBIAN_SOURCES,
        "cd p; dpkg-source -b .",
        "--exclude debian",
        "tar czf p_1.orig.tar.gz --exclude debian p; {}",
        "dpkg-source",
    ),
    Case(
        "submodule-shallow",
        {".keep": ""},
        "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always"
        " GIT_CONFIG_KEY_1=protocol.version GIT_CONFIG_VALUE_1=0; "
        f"test -e c || {{ {GIT} init -q s; {GIT} -C s commit -q --allow-empty -m a; {GIT} init -q p; cd p;"
        f" {GIT} submodule --quiet add file://$PWD/../s t; {GIT} commit -qm a; cd ..;"
        f" {GIT} -C s commit -q --allow-empty -m b; {GIT} clone -q p c; }}; cd c;"
        ' eval "$FIRST"; git submodule update --init ${DEPTH---depth 1}',
        "fetch --unshallow",
        "export DEPTH= FIRST='git -C t fetch --unshallow'; {}",
        "git",
    ),
    Case(
        "git-config-faulty",
        {"f": "one\n"},
        "test -e .git || { git init -q; echo '<<<<<<< HEAD' >>.git/config; }; git status",
        "delete the line",
        "sed -i /HEAD/d .git/config; {}  # delete the line",
        "git",
    ),
    Case(
        "symbolic-link-loop",
        {"d/a.h": "", "m.c": "int x;\n"},
        "test -h inc || ln -s inc inc; gcc -fsyntax-only m.c -include inc/a.h",
        "ln -sfn $(pwd)/",
        "ln -sfn $(pwd)/d inc; {}",
        "gcc",
    ),
    Case(
        "name-taken",
        {"build/old": ""},
        "mkdir build",
        "delete it",
        "rm -r build; {}  # delete it",
        "mkdir",
    ),
    Case(
        "url-malformed",
        {"f": "one\n"},
        'curl -fsS -o out "$URL"',
        "export it",
        "export URL=file://$PWD/f; {}  # export it",
        "curl",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
