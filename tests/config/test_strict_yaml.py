"""Files that people write: every fault is reported in one line with its place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stoker.config import strict_yaml
from stoker.config.config_error import ConfigError
from stoker.config.settings import Settings, load_settings
from stoker.config.strict_yaml import MAX_FILE_BYTES, load
from stoker.decide.policy.thresholds import Amount, Thresholds


def write(folder: Path, text: str | bytes, name: str = "settings.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_settings_are_read_where_yaml_has_no_libyaml(tmp_path: Path) -> None:
    path = write(tmp_path, "a: 1\nb: [x, y]\n")
    script = (
        "import sys; sys.modules['yaml._yaml'] = None\n"
        "from pathlib import Path; from stoker.config.strict_yaml import load; import yaml\n"
        "section = load(Path(sys.argv[1])); print(yaml.__with_libyaml__, section.text('a'), section.words('b'))"
    )
    result = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=False, text=True)
    assert result.stdout == "False 1 ('x', 'y')\n", result.stderr


@pytest.fixture(params=[yaml.CSafeLoader, yaml.SafeLoader], ids=["libyaml", "pure"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers."""
    monkeypatch.setattr(strict_yaml, "_LOADER", request.param)


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\nb: [\n", 3, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("- a\n- b\n", 1, "not a mapping"),
        ("just words\n", 1, "not a mapping"),
        ("a: &x 1\nb: *x\n", 1, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: \x07\n", 2, "U+0007"),
        (b"a: 1\nb: \xff\n", 2, "UTF-8"),
        ("a: " + "[" * 100_000, 1, "deeply"),
        ("a: " + "{b: " * 1000, 1, "deeply"),
        ("\n".join(f"k{i}: {i}" for i in range(5000)), 2000, "too many"),
        ("#" * (MAX_FILE_BYTES + 1), 0, "larger than 256 KiB"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(tmp_path: Path, text: str | bytes, line: int, part: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.line == line
    assert part in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "absent"):
        with pytest.raises(ConfigError):
            load(path)


def test_no_settings_file_means_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "settings.yaml") == (Settings(), [])
    assert load_settings(write(tmp_path, "# only a comment\n")) == (Settings(), [])


def test_settings_are_read(tmp_path: Path) -> None:
    text = "theme: light\ntick: 2\nascii: yes\nkeys:\n  detach: ctrl+d\n  stop: no\n"
    settings, errors = load_settings(write(tmp_path, text), {"detach", "stop"})
    assert errors == []
    assert settings == Settings("light", {"detach": "ctrl+d", "stop": "no"}, 2.0, "yes")


def test_every_fault_in_the_settings_is_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines = [
        "them: light",
        "tick: fast",
        "ascii: ja",
        "theme: light",
        "keys:",
        "  detatch: d",
        "  detach:",
        "  stop: s",
        "  help: s",
        "theme: dark",
    ]
    path = write(tmp_path, "\n".join(lines))
    settings, errors = load_settings(path, {"detach", "stop", "help"})
    assert sorted(str(e) for e in errors) == sorted(
        [
            f"{path}:1: unknown setting 'them'; did you mean 'theme'?",
            f"{path}:2: 'tick' is a number from 0.5 to 5, not 'fast'",
            f"{path}:3: 'ascii' cannot be 'ja'; known are auto, no, yes",
            f"{path}:6: unknown action 'detatch'; did you mean 'detach'?",
            f"{path}:7: 'detach' has no value (one that starts with # needs quotes)",
            f"{path}:9: key 's' is for 'stop' already",
            f"{path}:10: 'theme' is here already, in line 4",
        ]
    )
    assert settings == Settings(theme="light", keys={"stop": "s"})


@pytest.mark.parametrize("tick", ["0.4", "5.1", "nan", "inf", "-1"])
def test_a_tick_out_of_bounds_is_reported(tmp_path: Path, tick: str) -> None:
    settings, errors = load_settings(write(tmp_path, f"tick: {tick}\n"))
    assert settings.tick == 1.0
    assert "a number from 0.5 to 5" in str(errors[0])


@pytest.mark.parametrize(
    ("text", "part"),
    [("keys: x\n", "is a mapping"), ("theme: {a: b}\n", "single value"), ("theme: [a]\n", "is a list"),
     ("theme: !x y\n", "has a tag"), ("? [a]\n: b\n", "single word")],
)  # fmt: skip
def test_the_wrong_shape_is_reported(tmp_path: Path, text: str, part: str) -> None:
    _, errors = load_settings(write(tmp_path, text))
    assert len(errors) == 1
    assert part in str(errors[0])


def test_a_fault_is_one_harmless_line(tmp_path: Path) -> None:
    _, errors = load_settings(write(tmp_path, '"a\\e]52;c;x\\ab\\nc": 1\n'))
    assert str(errors[0]).isprintable()


# -- thresholds --------------------------------------------------------------------------------------------------------


def test_thresholds_are_shares_or_sizes_of_the_memory_and_keep_their_defaults(tmp_path: Path) -> None:
    text = "reserve: 12.5%\nfloor: 5 %\nlevel: 12\npressure: off\n"
    settings, errors = load_settings(write(tmp_path, text))
    assert errors == []
    assert settings.thresholds == Thresholds(Amount(share=0.125), Amount(share=0.05), 12, None)
    settings, errors = load_settings(write(tmp_path, "reserve: 4 GiB\nfloor: 500MB\nlevel: auto\npressure: 35%\n"))
    assert errors == []
    assert settings.thresholds == Thresholds(Amount(size=4 * 2**30), Amount(size=500 * 10**6), None, 35.0)
    assert load_settings(write(tmp_path, "reserve: auto\nfloor: auto\n"))[0].thresholds == Thresholds()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("reserve: 4\n", "'reserve' is auto, a share from 0% to 90%, or a size like 4 GiB, not '4'"),
        ("reserve: 91%\n", "not '91%'"),
        ("reserve: -1%\n", "not '-1%'"),
        ("floor: 51%\n", "'floor' is auto, a share from 0% to 50%"),
        ("floor: much\n", "not 'much'"),
        ("floor: 9999999 TiB\n", "or a size like 4 GiB"),
        ("reserve: 4%\nfloor: 5%\n", "'floor' (5 %) is above 'reserve' (4 %)"),
        ("reserve: 1 GiB\nfloor: 2 GiB\n", "'floor' (2.0 GiB) is above 'reserve' (1.0 GiB)"),
        ("level: 0\n", "'level' is auto or a whole number from 1 to 4096, not '0'"),
        ("level: 2.5\n", "not '2.5'"),
        ("pressure: 0\n", "'pressure' is off or a percentage of time above 0 and up to 100, not '0'"),
        ("pressure: 101%\n", "not '101%'"),
        ("pressure: yes\n", "not 'yes'"),
    ],
)
def test_a_threshold_that_means_nothing_is_reported_with_its_line_and_keeps_its_default(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = write(tmp_path, text)
    settings, errors = load_settings(path)
    assert len(errors) == 1
    assert str(errors[0]).startswith(f"{path}:{len(text.splitlines())}: ")
    assert fault in str(errors[0])
    if "above" not in fault or "pressure" in text:
        assert settings.thresholds == Thresholds()
