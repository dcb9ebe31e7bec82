"""What the engine expects of jobs, over builds: learnt from samples, kept between builds, by command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.config.priors import load_priors, shipped_priors
from stoker.engine.learn import expectations as module
from stoker.engine.learn.expectations import Expectations
from stoker.model import events as ev
from stoker.model.codec import decode_record, encode_record
from stoker.model.lessons import Lesson
from stoker.record.history import History
from stoker.record.jsonlines import dump_line, parse_line

GIB = 2**30
PRIORS, _ = load_priors([shipped_priors()])
KERNEL = ("/bin/sh", "-c", "cd /tmp/b && /usr/bin/nvcc -O3 -arch=sm_80 -Xcompiler -fPIC -I/x -c a.cu -o a.o")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.sqlite3"


@pytest.fixture
def expectations(path: Path) -> Iterator[Expectations]:
    history = History(path)
    yield Expectations(PRIORS, history, cores=16)
    history.close()


def compile_line(output: str, options: str = "-O2", compiler: str = "g++") -> tuple[str, ...]:
    return ("/bin/sh", "-c", f"{compiler} {options} -MF {output}.d -c {output}.cpp -o {output}")


def run(
    expectations: Expectations,
    jid: int,
    output: str,
    argv: tuple[str, ...],
    *,
    tool: str = "cxx",
    peak: float = 2.0,
    seconds: int = 40,
    ok: bool = True,
) -> None:
    """A job that climbs to `peak` GiB and holds it for a second half, sampled once a second."""
    for age in range(seconds):
        held = peak * GIB * min(1.0, 2 * age / seconds)
        expectations.sample(jid, float(age), held, "cc1plus", float(age))
    expectations.finished(jid, output, tool, argv, ok, float(seconds))


async def build(path: Path, peak: float, options: str = "-O2") -> None:
    expectations = Expectations(PRIORS, History(path))
    for jid in range(1, 6):
        run(expectations, jid, f"{jid}.o", compile_line(f"{jid}.o", options), peak=peak)
    await expectations.close()


async def test_the_next_build_expects_what_the_last_one_saw(path: Path) -> None:
    await build(path, 2.0)
    second = Expectations(PRIORS, History(path))
    curve = second.expect(1, "3.o", "cxx", compile_line("3.o"))
    assert curve.source == "history"
    assert curve.peak == pytest.approx(2 * GIB, rel=0.05)
    assert curve.duration == pytest.approx(40, rel=0.05)
    assert second.expect(2, "new.o", "cxx", compile_line("new.o")).source == "prior cxx"
    assert second.expect(3, "3.o", "cxx", compile_line("3.o", "-O0")).source == "history, other flags"
    await second.close()
    assert second.notes.take() == []


async def test_make_and_ninja_and_other_folders_mean_the_same_job(path: Path) -> None:
    first = Expectations(PRIORS, History(path))
    place = "/tmp/pip-install-{}/flash-attn_{}/build/temp/csrc/a.o"
    here, there = place.format("k3j9x2", "0" * 32), place.format("zzzzzz", "f" * 32)
    run(first, 1, here, compile_line(here))
    await first.close()
    second = Expectations(PRIORS, History(path))
    assert second.expect(1, there, "cxx", compile_line(there)).source == "history"
    direct = ("g++", "-O2", "-c", "a.cpp", "-o", there)
    assert second.expect(2, there, "cxx", direct).source == "history"
    await second.close()


async def test_another_compiler_is_noticed_and_reckoned_with(path: Path) -> None:
    await build(path, 2.0)
    second = Expectations(PRIORS, History(path))
    for jid in range(1, 5):
        run(second, jid, f"{jid}.o", compile_line(f"{jid}.o"), peak=3.0)
    assert 2.3 * GIB < second.expect(9, "5.o", "cxx", compile_line("5.o")).peak < 3.1 * GIB
    await second.close()


def test_what_was_learnt_counts_at_once_for_a_new_job_and_for_the_others_when_it_is_said(
    expectations: Expectations,
) -> None:
    argv, before = compile_line("a.o"), expectations.version
    first = expectations.expect(1, "a.o", "cxx", argv)
    assert expectations.expect(1, "a.o", "cxx", argv) is first
    assert expectations.expect(2, "b.o", "cxx", compile_line("b.o")) is first, "of one class"
    run(expectations, 3, "c.o", compile_line("c.o"), peak=5.0)
    assert expectations.expect(4, "d.o", "cxx", compile_line("d.o")).peak > first.peak, "a new job"
    assert expectations.version == before
    expectations.renew()
    assert expectations.version != before, "now the others are to be asked for again"
    assert expectations.expect(1, "a.o", "cxx", argv).peak > first.peak


def test_a_job_that_gets_another_name_is_judged_by_it(expectations: Expectations) -> None:
    unnamed = expectations.expect(1, "", "nvcc", KERNEL)
    named = expectations.expect(1, "flash_bwd_hdim256_bf16_sm80.o", "nvcc", KERNEL)
    assert (unnamed.source, named.source) == ("prior nvcc", "prior flash-bwd-hdim256")


def test_gpus_and_threads_are_read_off_the_command_line(expectations: Expectations) -> None:
    archs = " ".join(f"-gencode arch=compute_{n},code=sm_{n}" for n in (80, 90, 100, 120))
    many = ("/bin/sh", "-c", f"/usr/local/cuda/bin/nvcc {archs} --threads 4 -c a.cu -o a.o")
    one = expectations.expect(1, "a.o", "nvcc", KERNEL)
    assert expectations.expect(2, "a.o", "nvcc", many).peak == pytest.approx(4 * one.peak)
    assert (expectations.width(KERNEL), expectations.width(many)) == (1.0, 4.0)


def test_a_link_that_takes_all_cores_is_as_wide_as_the_build_may_be(expectations: Expectations) -> None:
    link = ("/bin/sh", "-c", ": && g++ -O2 -flto=auto -shared -o libx.so a.o && :")
    assert expectations.width(link) == 16
    expectations.cores = 4
    assert expectations.width(link) == 4
    assert expectations.expect(1, "libx.so", "link", link).source == "prior link-lto"
    assert expectations.width(()) == 1.0


@pytest.mark.parametrize("how", ["failed", "killed", "adopted", "unknown command"])
async def test_who_teaches_nothing(path: Path, how: str) -> None:
    first = Expectations(PRIORS, History(path))
    argv = compile_line("a.o")
    if how == "adopted":
        first.adopted(1)
    if how == "killed":
        first.sample(1, 1.0, 9.0 * GIB, "cc1plus", 1.0)
        first.lost(1)
    else:
        run(first, 1, "a.o", () if how == "unknown command" else argv, ok=how != "failed")
    assert first.expect(2, "a.o", "cxx", argv).source == "prior cxx"
    await first.close()
    second = Expectations(PRIORS, History(path))
    assert second.expect(1, "a.o", "cxx", argv).source == "prior cxx"
    await second.close()


async def test_a_job_too_short_to_be_measured_is_remembered_as_light(path: Path) -> None:
    """A compilation of 0.07 s was unknown in each build, and waited for the 700 MiB of its class."""
    first = Expectations(PRIORS, History(path))
    before = first.expect(9, "b.o", "cxx", compile_line("b.o")).peak
    for jid in range(1, 4):
        first.finished(jid, f"{jid}.o", "cxx", compile_line(f"{jid}.o"), ok=True, seconds=0.3)
    first.sample(4, 0.02, 20 * 2**20, "cc1plus", 0.02)
    first.finished(4, "4.o", "cxx", compile_line("4.o"), ok=True, seconds=0.07)
    first.unseen("5.o", "cxx", compile_line("5.o"), 0.04)
    assert first.expect(9, "b.o", "cxx", compile_line("b.o")).peak < before
    await first.close()
    second = Expectations(PRIORS, History(path))
    for output, seconds in (("1.o", 0.3), ("4.o", 0.07), ("5.o", 0.04)):
        curve = second.expect(1, output, "cxx", compile_line(output))
        assert curve.source == "history"
        assert curve.duration == pytest.approx(seconds)
        assert curve.peak < 64 * 2**20
    await second.close()


async def test_what_only_bounds_a_job_is_a_guess_until_it_is_measured(path: Path) -> None:
    """`~94.3 MiB` without a `?` was shown of a job that nobody had measured; it holds 46 MiB."""
    argv = compile_line("a.o")
    first = Expectations(PRIORS, History(path))
    lesson = first.finished(1, "a.o", "cxx", argv, ok=True, seconds=0.8)
    assert lesson is not None
    assert lesson.bound
    await first.close()
    second = Expectations(PRIORS, History(path))
    assert second.expect(1, "a.o", "cxx", argv).is_guess
    run(second, 2, "a.o", argv, peak=0.05, seconds=4)
    await second.close()
    third = Expectations(PRIORS, History(path))
    measured = third.expect(1, "a.o", "cxx", argv)
    assert not measured.is_guess
    assert measured.peak == pytest.approx(0.05 * GIB, rel=0.5), "the bound is forgotten"
    await third.close()


async def test_what_earlier_builds_measured_bounds_a_new_job_that_nobody_sees(path: Path) -> None:
    first = Expectations(PRIORS, History(path))
    for jid in range(1, 5):
        run(first, jid, f"{jid}.o", compile_line(f"{jid}.o"), peak=0.05, seconds=4)
    await first.close()
    second = Expectations(PRIORS, History(path))
    lesson = second.finished(9, "new.o", "cxx", compile_line("new.o"), ok=True, seconds=0.9)
    assert lesson is not None
    assert max(lesson.sizes) < 100 * 2**20
    await second.close()


def test_a_link_and_an_archive_need_what_their_inputs_allow(
    expectations: Expectations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared library of 1 MB was taken for 1.5 GiB and an archive for 100 MiB: they waited while others ran."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.o", "b.o"):
        Path(name).write_bytes(bytes(2**20))
    Path("link.txt").write_text("/usr/bin/c++ -shared -o libx.so a.o b.o\n")
    Path("all.rsp").write_text("a.o b.o")
    links = ("g++ -shared -o libx.so a.o b.o", "g++ -o x @all.rsp", "cmake -E cmake_link_script link.txt --verbose=1")
    for jid, line in enumerate(links):
        curve = expectations.expect(jid, f"{jid}.so", "link", ("sh", "-c", line), os.getpid())
        assert curve.peak < 64 * 2**20, line
        assert curve.is_guess
    archive = expectations.expect(7, "x.a", "archive", ("sh", "-c", "ar qc x.a a.o b.o && ranlib x.a"), os.getpid())
    assert archive.peak < 16 * 2**20
    lto = expectations.expect(8, "y.so", "link", ("sh", "-c", "g++ -flto -shared -o y.so a.o b.o"), os.getpid())
    assert lto.peak > 10 * archive.peak, "the linker compiles; its inputs do not say how much"
    gone = expectations.expect(9, "z.so", "link", ("sh", "-c", "g++ -shared -o z.so gone.o"), os.getpid())
    assert gone.peak == expectations.expect(10, "z.so", "link", ("sh", "-c", "g++ -shared -o z.so gone.o")).peak


@pytest.mark.parametrize(
    ("line", "light"),
    [
        ("cd lib && cmake -E cmake_symlink_library libx.so.1.2 libx.so.1 libx.so && :", True),
        ("cp a b && touch b", True),
        ("python3 generate.py && touch out", False),
        ("cmake -E cmake_autogen info.json Release", False),
        ("touch $(find . -name '*.h')", False),
    ],
)
def test_what_copies_and_links_files_is_small(expectations: Expectations, line: str, light: bool) -> None:
    curve = expectations.expect(1, "out", "other", ("sh", "-c", line), os.getpid())
    assert (curve.peak < 16 * 2**20) is light


async def test_what_only_bounds_a_job_replaces_no_measurement_of_it(path: Path) -> None:
    first = Expectations(PRIORS, History(path))
    run(first, 1, "a.o", compile_line("a.o"), peak=0.02, seconds=4)
    first.finished(2, "a.o", "cxx", compile_line("a.o"), ok=True, seconds=0.9)
    await first.close()
    second = Expectations(PRIORS, History(path))
    assert second.expect(1, "a.o", "cxx", compile_line("a.o")).peak == pytest.approx(0.02 * GIB, rel=0.5)
    await second.close()


async def test_a_job_of_which_only_the_beginning_was_seen_is_not_remembered(path: Path) -> None:
    first = Expectations(PRIORS, History(path))
    first.sample(1, 0.5, 2.0**20, "cc1plus", 0.5)
    first.finished(1, "a.o", "cxx", compile_line("a.o"), ok=True, seconds=9.0)
    first.finished(2, "b.o", "cxx", compile_line("b.o"), ok=True, seconds=1.8)
    first.unseen("c.o", "cxx", compile_line("c.o"), 9.0)
    await first.close()
    second = Expectations(PRIORS, History(path))
    for output in ("a.o", "b.o", "c.o"):
        assert second.expect(1, output, "cxx", compile_line(output)).source == "prior cxx"
    await second.close()


async def test_a_job_that_slept_is_remembered_as_it_was_measured(path: Path) -> None:
    first = Expectations(PRIORS, History(path))
    argv = ("/bin/sh", "-c", "sleep 2; touch a")
    for ran in (0.0, 0.0, 0.7, 1.7):  # on deck at first
        first.sample(1, 0.0, 2.0**20, "sleep", ran)
    first.finished(1, "a", "other", argv, ok=True, seconds=2.0)
    await first.close()
    second = Expectations(PRIORS, History(path))
    curve = second.expect(1, "a", "other", argv)
    assert (curve.source, round(curve.peak)) == ("history", 2**20)
    await second.close()


@pytest.mark.parametrize("compiler", ["ccache g++", "/usr/lib/ccache/g++", "CCACHE_DIR=/x sccache g++"])
async def test_a_hit_in_a_compiler_cache_is_not_taken_for_a_small_job(path: Path, compiler: str) -> None:
    first = Expectations(PRIORS, History(path))
    argv = compile_line("a.o", compiler=compiler)
    first.finished(1, "a.o", "cxx", argv, ok=True, seconds=0.1)
    first.unseen("a.o", "cxx", argv, 0.1)
    await first.close()
    second = Expectations(PRIORS, History(path))
    assert second.expect(1, "a.o", "cxx", argv).source == "prior cxx"
    await second.close()


async def test_asking_for_a_whole_plan_keeps_nothing(expectations: Expectations) -> None:
    for number in range(100):
        assert expectations.foretell(f"{number}.o", "cxx", compile_line(f"{number}.o")).held > 0
    assert not expectations._traits
    assert not expectations._memories


async def test_what_has_ended_is_not_kept_in_memory(expectations: Expectations) -> None:
    for jid in range(1, 20):
        expectations.expect(jid, f"{jid}.o", "cxx", compile_line(f"{jid}.o"))
        expectations.width(compile_line(f"{jid}.o"))
        if jid % 2:
            run(expectations, jid, f"{jid}.o", compile_line(f"{jid}.o"))
        else:
            expectations.lost(jid)
    assert not expectations._traits
    assert not expectations._memories
    assert not expectations._asked


async def test_flush_writes_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(path)
    expectations = Expectations(PRIORS, history)
    run(expectations, 1, "a.o", compile_line("a.o"))
    await expectations.flush()
    assert history.pending == 1, "a moment ago the file was read"
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.0)
    await expectations.flush()
    assert history.pending == 0
    await expectations.close()


async def test_a_history_that_cannot_be_used_is_told_once_and_done_without(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")
    expectations = Expectations(PRIORS, History(path))
    (note,) = expectations.notes.take()
    assert "not used" in note
    run(expectations, 1, "a.o", compile_line("a.o"), peak=5.0)
    assert expectations.expect(2, "b.o", "cxx", compile_line("b.o")).source == "1 like it"
    await expectations.close()
    assert expectations.notes.take() == []


async def test_without_a_history_a_build_still_learns() -> None:
    expectations = Expectations(PRIORS)
    before = expectations.expect(1, "b.o", "cxx", compile_line("b.o"))
    run(expectations, 2, "a.o", compile_line("a.o"), peak=5.0)
    expectations.renew()
    assert expectations.expect(1, "b.o", "cxx", compile_line("b.o")).peak > before.peak
    await expectations.close()


async def test_an_engine_that_takes_over_expects_to_the_digit_what_the_one_before_it_did(path: Path) -> None:
    """Also where an earlier build is remembered, whose figures change with each job that ends."""
    await build(path, 2.0)
    first, journal = Expectations(PRIORS, History(path)), []
    for jid in range(1, 9):
        peak, seconds = 0.9 + 0.37 * jid, 20 + 3 * jid
        argv, output = compile_line(f"{jid}.o"), f"{jid}.o"
        for age in range(seconds):
            first.sample(jid, age * 1.0001, peak * GIB * min(1.0, 2 * age / seconds) + 0.3, "cc1plus", age)
        lesson = first.finished(jid, output, "cxx", argv, ok=True, seconds=float(seconds))
        event = ev.JobFinished(jid, 1, output, "cxx", float(seconds), "ok", lesson=lesson)
        journal.append(dump_line(encode_record(ev.Record(jid, 0.0, event))))
    first.renew()
    await first.flush()
    second = Expectations(PRIORS, History(path))
    before = second.expect(20, "new.o", "cxx", compile_line("new.o"))
    for line in journal:
        told = decode_record(parse_line(line)).event
        assert isinstance(told, ev.JobFinished)
        second.recall(told)
    asked = ("new.o", "cxx", compile_line("new.o")), ("a.cu.o", "nvcc", KERNEL), ("5.so", "link", ("ld", "-o", "5.so"))
    for jid, question in enumerate(asked, start=30):
        assert second.expect(jid, *question) == first.expect(jid, *question)
    assert second.expect(20, "new.o", "cxx", compile_line("new.o")) != before, "it has learnt something"
    assert max(map(len, journal)) < 1500, "a journal of 7,000 jobs stays within some megabytes"
    await first.close()
    await second.close()


def test_a_lesson_that_makes_no_sense_is_passed_over(expectations: Expectations) -> None:
    before = expectations.expect(1, "a.o", "cxx", compile_line("a.o"))
    for lesson in (Lesson("cxx", (), (), ()), Lesson("nobody knows it", (0.0, 9.0), (1, 2), ("", ""))):
        expectations.recall(ev.JobFinished(2, 1, "b.o", "cxx", 9.0, "ok", lesson=lesson))
    assert expectations.expect(1, "a.o", "cxx", compile_line("a.o")) == before


def test_a_killed_job_is_expected_to_need_what_it_was_seen_to_hold_until_it_succeeds(
    expectations: Expectations,
) -> None:
    """Two minutes after a compiler was killed at 241 MiB it was expected to need 114."""
    line = compile_line("a.o")
    before = expectations.expect(1, "a.o", "cxx", line).peak
    held, version = round(3 * before), expectations.version
    expectations.killed(ev.JobKilled("a.o", "unknown", held))
    assert expectations.version != version, "also for jobs that were asked about before"
    assert expectations.expect(2, "a.o", "cxx", line).peak == held
    assert expectations.foretell("a.o", "cxx", line).held == held
    expectations.killed(ev.JobKilled("a.o", "person", held // 2))
    assert expectations.expect(3, "a.o", "cxx", line).peak == held, "the last one was killed earlier"
    assert expectations.expect(4, "b.o", "cxx", compile_line("b.o")).peak == before
    run(expectations, 3, "a.o", line, peak=2.5 * before / GIB)
    assert expectations.expect(5, "a.o", "cxx", line).peak < 3 * before


def test_a_kill_of_an_unknown_job_or_of_one_that_nobody_saw_teaches_nothing(expectations: Expectations) -> None:
    version = expectations.version
    expectations.killed(ev.JobKilled("", "person", GIB, 3))
    expectations.killed(ev.JobKilled("a.o", "unknown"))
    assert expectations.version == version
