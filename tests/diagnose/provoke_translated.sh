#!/bin/bash
# Provokes failures in other languages and writes translated/*.txt anew: after `== RULE` what the tools printed. Wants Debian's
# locales-all and gcc-12-locales; binutils, make, bash, tar and the C library bring their own. CMake, ninja and pip speak English.
set -u
out=$(cd "$(dirname "$0")" && pwd)/translated
cd "$(mktemp -d)" || exit
echo '#include <nosuch.h>' >h.cpp
echo 'int f(){return x;}' >u.cpp
echo 'int g(); int main(){return g();}' >l.cpp
echo 'int main(){int x;}' >w.cpp
say() { echo "== $1"; bash -c "$2" 2>&1 | sed '/^$/d'; }
for language in de_DE fr_FR zh_CN ja_JP; do
  export LC_ALL=$language.UTF-8 LANGUAGE=
  {
    printf 'all:\n\tmissing/tool\n' >Makefile; say command-not-found make
    say command-not-found 'flexofnobody x'
    printf 'all:\n\tflexofnobody x\n' >Makefile; say command-not-found make
    say unknown 'g++ -c u.cpp'
    say unknown 'tar xf h.cpp'
    say damaged-archive 'gzip -dc h.cpp'
    printf 'all: gone.c\n\tcc gone.c\n' >Makefile; say unknown make
    printf 'all:\n    cc\n' >Makefile; say unknown make
    say memory-refused 'ulimit -v 60000; g++ -O2 -c w.cpp -include vector -include map -include regex'
    say missing-fpic 'echo "int counter; int n(){return ++counter;}" | g++ -shared -fno-pic -x c++ - -o l.so'
    say missing-header 'g++ -c h.cpp'
    say missing-library 'g++ w.cpp -lofnobody -o l'
    say no-name-resolution 'git clone -q https://git.invalid/x y'
    say source-file-missing 'g++ -c gone.cpp'
    printf 'all:\n\tkill -9 $$$$\n' >Makefile; say step-killed make
    say unknown 'touch /proc/x'
    say undefined-reference 'g++ l.cpp -o l'
    say unknown-compiler-option 'g++ -fno-such -c w.cpp'
    say warnings-as-errors 'g++ -Wall -Werror -c w.cpp'
  } >"$out/${language%_*}.txt"
done
