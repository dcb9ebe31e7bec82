"""What jobs take, by what was stated of them and by the jobs that have ended."""

from __future__ import annotations

import pytest

from stoker.decide.time_left.durations import Durations, ExpectedJob, RunSoFar, Took, expected_job, kind_of, weight
from stoker.model.lessons import Stated


def expected(durations: Durations, tool: str, output: str, size: int = 0) -> float:
    durations.update(())
    return durations.seconds(job_of(tool, output, size))


def job_of(tool: str, output: str, size: int = 0) -> ExpectedJob:
    return expected_job(weight(tool, output, size), tool, output)


def ended(durations: Durations, tool: str, output: str, seconds: float, times: int = 1) -> None:
    for _ in range(times):
        durations.add(job_of(tool, output), seconds)


def test_the_language_is_told_by_the_object() -> None:
    assert kind_of("cxx", "d/a.c.o") == "c"
    assert kind_of("cxx", "d/a.cc.o") == kind_of("cxx", "a.o") == "cxx"
    assert kind_of("link", "a.c.o") == "link"


def test_larger_sources_weigh_more_within_bounds() -> None:
    sizes = [weight("cxx", "a.o", size).amount for size in (1, 200, 8_000, 100_000, 2_000_000, 2**31)]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[1]
    assert sizes[-1] == sizes[-2]
    assert weight("cxx", "a.o", 8_000) == weight("cxx", "a.o"), "one of unknown size is a typical one"
    assert weight("link", "a.so", 10**6) == weight("link", "a.so"), "only what is compiled has a source"


def test_before_any_job_has_ended_nothing_tells_seconds() -> None:
    durations = Durations()
    assert not durations.scaled
    ended(durations, "cxx", "d/a.o", 5.0)
    assert durations.scaled


def test_numbered_files_are_known_by_each_other_more_than_by_their_folder() -> None:
    """Seven kernels of one template among small files, as a kernel library has them."""
    durations = Durations()
    ended(durations, "cxx", "obj/small_1.o", 0.2, 8)
    ended(durations, "cxx", "obj/kernel_0.o", 9.0, 3)
    assert 6.0 < expected(durations, "cxx", "obj/kernel_7.o") < 9.0
    assert expected(durations, "cxx", "obj/small_9.o") < 0.6
    assert 0.6 < expected(durations, "cxx", "obj/other.o") < 6.0


def test_what_is_remembered_of_some_jobs_scales_the_others() -> None:
    durations = Durations()
    durations.suppose(Took(10.0, 5.0, 40.0))
    assert durations.scaled
    assert expected(durations, "cxx", "new/a.o") == pytest.approx(8.0)


def test_a_folder_is_known_by_its_own_jobs_more_than_by_others() -> None:
    durations = Durations()
    ended(durations, "cxx", "light/a.o", 1.0, 20)
    ended(durations, "cxx", "heavy/a.o", 40.0, 20)
    assert expected(durations, "cxx", "light/b.o") < 5.0
    assert expected(durations, "cxx", "heavy/b.o") > 30.0
    assert 10.0 < expected(durations, "cxx", "new/b.o") < 30.0


def test_a_new_folder_is_a_mean_of_folders_not_of_jobs() -> None:
    durations = Durations()
    ended(durations, "cxx", "many/a.o", 1.0, 4000)
    for folder in "abcd":
        ended(durations, "cxx", f"{folder}/a.o", 41.0, 20)
    assert expected(durations, "cxx", "new/b.o") > 20.0


def test_one_kind_tells_something_of_another() -> None:
    durations = Durations()
    ended(durations, "cxx", "d/a.o", 30.0, 5)
    assert 3.0 < expected(durations, "link", "d/lib.so") < 20.0


def test_what_a_link_takes_does_not_follow_from_how_small_the_sources_are() -> None:
    """Sources of 125 bytes that include much: two links were expected to take longer than all that was left."""
    durations = Durations()
    for number in range(5):
        durations.add(job_of("cxx", f"d/{number}.o", 125), 15.0)
    assert expected(durations, "cxx", "d/b.o", 125) == pytest.approx(15.0)
    assert expected(durations, "link", "app") < 5.0
    ended(durations, "link", "lib.so", 0.3)
    assert expected(durations, "link", "app") < 3.0


def test_running_jobs_count_as_what_they_will_come_to() -> None:
    """The first to end are the short ones: 60 others have run for ten times as long, and go on."""
    durations = Durations()
    ended(durations, "cxx", "d/a.o", 1.0, 4)
    alone = expected(durations, "cxx", "d/b.o")
    job = job_of("cxx", "d/b.o")
    durations.update([(job, RunSoFar(10.0))] * 60)
    assert durations.seconds(job) > 10 * alone


def test_what_was_stated_is_corrected_and_what_was_long_ago_fades() -> None:
    durations = Durations()
    job = expected_job(Stated("history", 10.0), "cxx", "a.o")
    for seconds in (10.0, 40.0):
        for _ in range(100):
            durations.add(job, seconds)
    durations.update(())
    assert durations.seconds(job) > 33.0


def test_sizes_count_only_as_far_as_they_say_something_in_this_build() -> None:
    """Of a unity build the small sources, which include all others, are the heavy ones."""
    plain, unity = Durations(), Durations()
    for n, size in enumerate((1_000, 2_000, 4_000, 8_000, 16_000, 32_000) * 4):
        plain.add(job := job_of("cxx", f"d/{n}.o", size), 10 * job.stated)
        unity.add(job := job_of("cxx", f"{n}/a.o", size), 10 / job.stated)
    assert expected(plain, "cxx", "d/b.o", 32_000) > 5 * expected(plain, "cxx", "d/b.o", 1_000)
    assert expected(unity, "cxx", "e/b.o", 32_000) == pytest.approx(expected(unity, "cxx", "e/b.o", 1_000))


def test_a_job_that_has_outlived_its_expectation_goes_on_for_a_while() -> None:
    job = expected_job(Stated("history", 10.0), "cxx", "a.o")
    assert Durations().remainder(job, RunSoFar(4.0)) == pytest.approx(6.0)
    assert 0.0 < Durations().remainder(job, RunSoFar(30.0)) < 30.0


def test_stated_seconds_are_taken_as_they_are_until_jobs_say_otherwise() -> None:
    durations, job = Durations(), expected_job(Stated("history", 10.0), "cxx", "a.o")
    assert durations.seconds(job) == 10.0
    for _ in range(10):
        durations.add(job, 30.0)
    durations.update(())
    assert durations.seconds(job) == pytest.approx(30.0, rel=0.1)


def test_what_other_machines_took_compares_jobs_and_the_own_ones_say_how_long_they_take_here() -> None:
    durations = Durations()
    for n in range(10):
        durations.add(job_of("cxx", f"light/{n}.o"), 8.0, elsewhere=True)
        durations.add(job_of("cxx", f"heavy/{n}.o"), 40.0, elsewhere=True)
    light, heavy = job_of("cxx", "light/x.o"), job_of("cxx", "heavy/x.o")
    for n in range(3):
        durations.add(job_of("cxx", f"light/own{n}.o"), 2.0)
    durations.update((), alone=True)
    assert durations.seconds(light) < 4.0
    assert durations.seconds(heavy) == pytest.approx(5 * durations.seconds(light), rel=0.4)
    durations.update(())
    assert durations.seconds(heavy) > 30.0, "others compile again"


def test_a_small_job_of_another_kind_says_nothing_about_what_this_machine_compiles() -> None:
    durations = Durations()
    for n in range(10):
        durations.add(job_of("cxx", f"d/{n}.o"), 8.0, elsewhere=True)
    durations.add(job_of("other", "generated.h"), 0.01)
    durations.update((), alone=True)
    assert durations.seconds(job_of("cxx", "d/x.o")) == pytest.approx(8.0, rel=0.3)


def test_what_is_remembered_is_corrected_only_by_own_jobs_once_there_are_no_others() -> None:
    durations, job = Durations(), expected_job(Stated("history", 2.0), "cxx", "a.o")
    for _ in range(10):
        durations.add(job, 20.0, elsewhere=True)
    durations.update(())
    assert durations.seconds(job) > 15.0
    durations.update((), alone=True)
    assert durations.seconds(job) == 2.0
    for _ in range(3):
        durations.add(job, 4.0)
    durations.update((), alone=True)
    assert durations.seconds(job) == pytest.approx(4.0, rel=0.1)


def test_one_job_that_needed_much_more_than_stated_says_little_of_the_others() -> None:
    """A source had grown and needed 2.4 times its CPU seconds: the last jobs had 26 s left and were expected at 68."""
    durations, rest = Durations(), expected_job(Stated("history", 6.0), "cxx", "rest.o")
    for stated, cpu, seconds in ((7.1, 5.7, 11.0), (12.0, 29.0, 50.0)):
        durations.add(expected_job(Stated("history", stated), "cxx", "a.o"), seconds, cpu=cpu)
    durations.update([])
    assert 9.0 < durations.seconds(rest) < 13.0, "1.8 seconds for each CPU second, and few more of those"
    run = RunSoFar(4.0, 3.0)
    durations.update([(rest, run)])
    assert 3.0 < durations.remainder(rest, run) < 7.0


def test_jobs_that_agree_show_that_all_need_more_than_stated() -> None:
    durations, rest = Durations(), expected_job(Stated("history", 6.0), "cxx", "rest.o")
    for number in range(20):
        durations.add(expected_job(Stated("history", 6.0), "cxx", f"{number}.o"), 18.0, cpu=12.0)
    durations.update([])
    assert durations.seconds(rest) == pytest.approx(18.0, rel=0.1)


def test_the_first_seconds_on_a_busy_machine_say_little_of_jobs_that_have_not_begun() -> None:
    durations, job = Durations(), expected_job(Stated("history", 6.0), "cxx", "a.o")
    starved = [(job, RunSoFar(13.0, 0.45))] * 8
    durations.update(starved)
    assert 6.0 < durations.seconds(job) < 60.0, "they get a thirtieth of a core, and so may others, or not"
    assert durations.remainder(*starved[0]) > 100.0, "these are slow now"
