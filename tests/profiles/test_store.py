"""Where profiles come from and go to."""

import json
import sys
from pathlib import Path

import pytest

from phaseguard.errors import ProfileError
from phaseguard.profiles import PhaseProfile, list_profiles, load_profile, save_profile, store, user_folder

SHIPPED = {
    "deepseek-v4-flash": (4, (4, 128), None, 19.1, "deepseek-v4", 0),
    "deepseek-v4-flash-base": (4, (4, 128), None, 40.2, "plain", 1),
    "deepseek-v4-pro": (4, (4, 128), None, 14.8, "deepseek-v4", 0),
    "deepseek-v4-pro-base": (4, (4, 128), None, 34.8, "plain", 1),
    "deepseek-v4.1-flash": (2, (2,), {1}, 6.1, "deepseek-v4.1", 0),
    "deepseek-v3": (1, (), None, None, "plain", 1),
    "llama-3": (1, (), None, None, "plain", 1),
}


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    folder = tmp_path / "own"
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(folder))
    return folder


def measured(name="mine", date="2026-10-01", **changes):
    profile = load_profile("deepseek-v4-flash")
    shape = {"mean": [0.1, 0.2, 0.9, 0.8], "low": [0, 0.1, 0.8, 0.7], "high": [0.2, 0.3, 1, 0.9], "n": 1500}
    given = {"kind": "measured", "source": "http://x", "date": date, "command": "phaseguard calibrate"}
    return profile.with_(name=name, strengths={"1": shape}, provenance=given, **changes)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles(name):
    profile = load_profile(name)
    period, strides, strong, gap, chat, offset = SHIPPED[name]
    assert (profile.name, profile.period, profile.strides, profile.chat) == (name, period, strides, chat)
    assert (profile.prefix_offset, profile.strengths, profile.strong) == (offset, None, strong)
    assert profile.reported.gap_points == gap
    assert profile.provenance.kind == "reported"
    assert profile.window == (128 if period > 1 else None)
    file = store.SHIPPED / f"{name}.json"
    assert profile.to_json() == file.read_text(encoding="utf-8")


def test_every_shipped_profile_is_in_the_table():
    assert {entry.name for entry in list_profiles()} == set(SHIPPED)


def test_objects_fields_and_paths(tmp_path):
    profile = load_profile("deepseek-v4-flash")
    assert load_profile(profile) is profile
    assert load_profile(json.loads(profile.to_json())) == profile
    path = save_profile(profile, tmp_path / "deep" / "x.json")
    assert load_profile(path) == load_profile(str(path)) == profile


def test_near_names_are_listed(tmp_path):
    with pytest.raises(ProfileError, match="Did you mean 'deepseek-v4-flash'"):
        load_profile("deepseek-v4-flsh")
    with pytest.raises(ProfileError, match="Known names: deepseek-v3"):
        load_profile("zzz")
    with pytest.raises(ProfileError, match=r"no profile file .*llama3\.json. Did you mean 'llama-3'"):
        load_profile(tmp_path / "llama3.json")
    with pytest.raises(ProfileError, match="not int"):
        load_profile(4)
    with pytest.raises(ProfileError, match="strings"):
        load_profile({1: 2})


def test_what_the_user_saved_is_found_and_wins(own):
    saved = measured("deepseek-v4-flash")
    assert save_profile(saved) == own / "deepseek-v4-flash.json"
    assert load_profile("deepseek-v4-flash") == saved
    entry = next(entry for entry in list_profiles() if entry.name == "deepseek-v4-flash")
    assert (entry.origin, entry.profile) == ("user", saved)
    assert [path.name for path in own.iterdir()] == ["deepseek-v4-flash.json"]


def test_the_newest_measurement_of_the_same_model_wins():
    save_profile(measured("old", "2026-10-01"))
    save_profile(measured("new", "2026-10-02"))
    save_profile(measured("elsewhere", "2026-10-03", provider="other"))
    save_profile(measured("thinking", "2026-10-04", reasoning="high"))
    assert load_profile("deepseek-v4-flash").name == "new"
    assert load_profile("old").name == "old"
    assert load_profile("deepseek-v4-pro").name == "deepseek-v4-pro"


def test_a_stated_profile_does_not_replace_a_shipped_one():
    save_profile(load_profile("deepseek-v4-flash").with_strong([2, 3]).with_(name="stated"))
    assert load_profile("deepseek-v4-flash").name == "deepseek-v4-flash"


def test_broken_files_are_named_and_do_not_hide_others(own, tmp_path):
    own.mkdir()
    broken = own / "broken.json"
    for content, words in [
        (b"{", "line 1, column 2"),
        (b"\xff", "not UTF-8"),
        (b"[]", "holds a list"),
        (b'{"schema": 9}', "schema 9"),
        (b'{"name": "x"}', "is missing"),
        (b"[" * 100_000, "cannot be read: maximum recursion depth"),
        (b"1" * 5_000, "cannot be read: Exceeds the limit"),
    ]:
        broken.write_bytes(content)
        with pytest.raises(ProfileError, match=words) as caught:
            load_profile("broken")
        assert str(broken) in str(caught.value)
        assert load_profile("deepseek-v4-flash").name == "deepseek-v4-flash"
        entry = next(entry for entry in list_profiles() if entry.name == "broken")
        assert entry.profile is None
        assert words.split(",", maxsplit=1)[0] in entry.problem
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(tmp_path)


def test_saving_is_whole_or_nothing(own, monkeypatch):
    profile = measured()
    save_profile(profile)
    with pytest.raises(ProfileError, match="overwrite=True"):
        save_profile(profile)
    changed = profile.with_(window=64)

    def fail(self, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(ProfileError, match="No space left"):
            save_profile(changed, overwrite=True)
    assert load_profile("mine") == profile
    assert [path.name for path in own.iterdir()] == ["mine.json"]
    save_profile(changed, overwrite=True)
    assert load_profile("mine") == changed


def test_others_may_read_a_saved_profile_and_a_link_stays_one(own, tmp_path):
    path = save_profile(measured())
    path.rename(tmp_path / "kept.json")
    path.symlink_to(tmp_path / "kept.json")
    (tmp_path / "kept.json").chmod(0o664)
    assert save_profile(measured().with_(window=64), overwrite=True) == path
    assert path.is_symlink()
    assert load_profile("mine").window == 64
    assert (tmp_path / "kept.json").stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CONFIG_HOME": "/c"}, "/c/phaseguard/profiles"),
        ("linux", {}, "/home/me/.config/phaseguard/profiles"),
        ("darwin", {}, "/home/me/Library/Application Support/phaseguard/profiles"),
        ("win32", {"APPDATA": "/a"}, "/a/phaseguard/profiles"),
        ("win32", {}, "/home/me/AppData/Roaming/phaseguard/profiles"),
        ("linux", {"PHASEGUARD_PROFILES": "/p"}, "/p"),
    ],
)
def test_the_folder_of_ones_own(monkeypatch, platform, variables, expected):
    for name in ("PHASEGUARD_PROFILES", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert user_folder().as_posix() == expected


def test_an_unknown_kind_of_profile_object_is_refused():
    class Odd(PhaseProfile):
        pass

    odd = Odd(name="x", tokenizer="t", period=1, provenance={"kind": "stated", "source": "me"})
    assert load_profile(odd) is odd
