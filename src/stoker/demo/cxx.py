"""The demo in C++: sources that are small on disk and large in a compiler. Unaware of where they are written.

Generated kernels, libraries, a program, and the program's own check as the last step.
"""

from __future__ import annotations

import shlex
import sys

from stoker.demo.ninjafile import NinjaFile, escape
from stoker.demo.opening import WORK, add_opening
from stoker.demo.sizing import DemoPlan

_HEADER = """\
// Every part takes some coal and gives some heat.
#pragma once
#include <cstddef>
#include <string>

std::size_t check_gauge(const std::string& reading);
"""

_LIGHT = """\
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "furnace.h"

std::size_t grate_{n:02}(std::size_t coal) {{
  std::vector<std::size_t> bars(coal % 97 + {n} + 1);
  std::iota(bars.begin(), bars.end(), std::size_t{{{n}}});
  std::rotate(bars.begin(), bars.begin() + static_cast<std::ptrdiff_t>(bars.size() / 2), bars.end());
  return std::accumulate(bars.begin(), bars.end(), std::size_t{{0}}) % 1009;
}}
"""

_MEDIUM = """\
#include <regex>
#include <string>

#include "furnace.h"

std::size_t gauge_{n:02}(std::size_t coal) {{
  static const std::regex reading("(\\\\d+)\\\\.?(\\\\d*) *(bar|psi|kPa){{1,{n1}}}");
  std::smatch found;
  const std::string text = std::to_string(coal) + ".5 bar";
  return std::regex_search(text, found, reading) ? found.size() + {n} : 0;
}}
"""

_KERNEL = """\
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "furnace.h"

// One type after another, each with containers and algorithms of its own: what makes a compiler hungry.
template <std::size_t I>
struct Key {
  std::size_t value;
  bool operator<(const Key& other) const { return value < other.value; }
};

template <std::size_t I>
struct Cell {
  std::string name;
  std::variant<int, double, std::string, std::vector<int>> load;
};

template <std::size_t I>
std::size_t burn(std::size_t coal) {
  std::map<Key<I>, std::vector<Cell<I>>> grate;
  for (std::size_t i = 0; i < coal; ++i)
    grate[Key<I>{i * (I + 7) % 31}].push_back({std::to_string(i), static_cast<int>(i)});
  std::size_t heat = 0;
  for (auto& [key, cells] : grate) {
    std::sort(cells.begin(), cells.end(), [](const Cell<I>& a, const Cell<I>& b) { return a.name < b.name; });
    for (auto& cell : cells) heat += key.value + cell.load.index();
    for (auto& cell : cells) heat += std::visit([](const auto& load) { return sizeof(load); }, cell.load);
  }
  return heat;
}

template <std::size_t... I>
std::size_t burn_all(std::size_t coal, std::index_sequence<I...>) {
  return (burn<I>(coal) + ... + 0);
}

std::size_t @NAME@(std::size_t coal) { return burn_all(coal, std::make_index_sequence<@SIZE@>{}); }
"""

_MAIN = """\
#include <cstdio>

#include "furnace.h"
#include "parts.h"

int main() {
  std::size_t heat = 0;
  for (auto part : parts) {
    const std::size_t once = part(40);
    if (once != part(40)) {
      std::puts("the furnace does not burn evenly");
      return 1;
    }
    heat += once;
  }
  std::printf("%zu parts burn evenly, %zu units of heat\\n", sizeof(parts) / sizeof(parts[0]), heat);
}
"""

_GENERATE = '''\
"""Writes a kernel source from its template, or the table of all parts."""

import sys
from pathlib import Path

what, output, *rest = sys.argv[1:]
if what == "kernel":
    name, size = rest
    text = Path("kernel.cpp.in").read_text().replace("@NAME@", name).replace("@SIZE@", size)
else:
    declarations = "".join(f"std::size_t {name}(std::size_t coal);\\n" for name in rest)
    text = f"#pragma once\\n#include <cstddef>\\n\\n{declarations}\\n"
    text += f"constexpr std::size_t (*parts[])(std::size_t) = {{{', '.join(rest)}}};\\n"
Path(output).write_text(text)
'''

_FAULTY = """\
#include <string>
#include <vector>

#include "furnace.h"

// This one is wrong on purpose.
std::size_t check_gauge(const std::string& reading) {
  std::vector<std::string> words{reading};
  return words.front().pressure() + words.size();
}
"""

_SOUND = """\
#include <string>

#include "furnace.h"

std::size_t check_gauge(const std::string& reading) { return reading.size(); }
"""


def cxx_project(plan: DemoPlan, compiler: str, *, fail: bool) -> dict[str, str]:
    """Return the project's files by name."""
    grates = [f"grate_{n:02}" for n in range(plan.light)]
    gauges = [f"gauge_{n:02}" for n in range(plan.medium)]
    files = {
        "include/furnace.h": _HEADER,
        "src/main.cpp": _MAIN,
        "src/check_gauge.cpp": _FAULTY if fail else _SOUND,
        "kernel.cpp.in": _KERNEL,
        "generate.py": _GENERATE,
        "work.py": WORK,
        **{f"src/{name}.cpp": _LIGHT.format(n=n) for n, name in enumerate(grates)},
        **{f"src/{name}.cpp": _MEDIUM.format(n=n, n1=n + 1) for n, name in enumerate(gauges)},
    }
    files["build.ninja"] = _ninja_text(plan, compiler, grates, gauges)
    return files


def _ninja_text(plan: DemoPlan, compiler: str, grates: list[str], gauges: list[str]) -> str:
    kernels = [f"kernel_{n:02}" for n in range(len(plan.heavy))]
    ninja = _with_rules(compiler)
    small, large = add_opening(ninja, plan)
    table = ninja.edge(
        "gen/parts.h", "table", implicit=["generate.py", *large], names=" ".join([*grates, *gauges, *kernels])
    )
    for name, size in zip(kernels, plan.heavy, strict=True):
        needs = ["generate.py", "kernel.cpp.in", *large]
        ninja.edge(f"gen/{name}.cpp", "kernel", implicit=needs, name=name, size=str(size))
    for name in kernels:
        ninja.edge(_object(name), "cxx", [f"gen/{name}.cpp"])
    for name in grates:
        ninja.edge(_object(name), "cxx", [f"src/{name}.cpp"], implicit=[small])
    # Behind two kernels, so that these have nobody but each other to fight with at first.
    for name in gauges:
        ninja.edge(_object(name), "cxx", [f"src/{name}.cpp"], implicit=[_object(kernel) for kernel in kernels[:2]])
    # Behind another source, so that an error in it comes while much else is running.
    ninja.edge("obj/check_gauge.o", "cxx", ["src/check_gauge.cpp"], implicit=[_object(grates[-1])])
    grate = ninja.edge("lib/libgrate.a", "archive", [_object(name) for name in grates])
    gauge = ninja.edge("lib/libgauge.a", "archive", [_object(name) for name in (*gauges, "check_gauge")])
    kernel = ninja.edge("lib/libkernel.a", "archive", [_object(name) for name in kernels])
    main = ninja.edge("obj/main.o", "cxx", ["src/main.cpp"], implicit=[table])
    program = ninja.edge("bin/furnace", "link", [main, kernel, gauge, grate])
    return ninja.text(ninja.edge("selftest.txt", "run", [program]))


def _object(name: str) -> str:
    return f"obj/{name}.o"


def _with_rules(compiler: str) -> NinjaFile:
    ninja = NinjaFile()
    cxx, python = escape(shlex.quote(compiler)), escape(shlex.quote(sys.executable))
    ninja.rule(
        "cxx",
        f"{cxx} -std=c++17 -O1 -Iinclude -Igen -MMD -MF $out.d -c $in -o $out",
        "Compiling $in",
        depfile="$out.d",
        deps="gcc",
    )
    ninja.rule("archive", "rm -f $out && ar rcs $out $in", "Archiving $out")
    ninja.rule("link", f"{cxx} $in -o $out", "Linking $out")
    ninja.rule("run", "./$in > $out", "Testing $in")
    ninja.rule("kernel", f"{python} generate.py kernel $out $name $size", "Generating $out")
    ninja.rule("table", f"{python} generate.py table $out $names", "Generating $out")
    return ninja
