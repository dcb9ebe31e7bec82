"""What a job held over its life: bounded, and no peak is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.model.course import MAX_STEPS, Course


@given(st.lists(st.tuples(st.floats(0.1, 500), st.integers(0, 2**40), st.floats(0, 400)), min_size=1, max_size=60))
def test_it_is_bounded_and_keeps_the_peak(samples: list[tuple[float, int, float]]) -> None:
    course, time = Course(), 0.0
    for pause, rss, cpu in samples:
        time += pause
        course = course.with_sample(time, rss, cpu)
    assert 0 < len(course.rss) == len(course.cpu) <= MAX_STEPS
    assert max(course.rss) == max(rss for _, rss, _ in samples)
    assert (len(course.rss) - 1) * course.step <= time - course.start < (len(course.rss)) * course.step


def test_steps_without_a_measurement_are_as_the_one_before() -> None:
    course = Course().with_sample(10, 5, 50.0).with_sample(13.5, 9, 20.4)
    assert course.rss == (5, 5, 5, 9)
    assert course.cpu == (50, 50, 50, 20)
