"""Objects that are kept packed are the same when they are asked for, and only a few of them stay unpacked."""

from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.kube import ObjectKey, ObjectMeta
from neorion.keel.kube.control.compressed_store import RECENT_MAX, SAMPLED, CompressedStore
from neorion.keel.kube.core import CONFIG_MAP, ConfigMap


def config(number: int, text: str = "x") -> ConfigMap:
    meta = ObjectMeta(name=f"c{number}", namespace="ns", labels={"n": str(number)}, resource_version="7")
    return ConfigMap(meta, data={"text": text})


def test_what_was_put_in_comes_out_however_long_ago_and_whatever_replaced_it():
    shelf = CompressedStore(CONFIG_MAP.type)
    things = [config(number) for number in range(RECENT_MAX * 2)]
    for thing in things:
        shelf[thing.meta.key] = thing
    newer = config(0, "newer")
    shelf[newer.meta.key] = newer
    del shelf[things[1].meta.key]
    assert list(shelf.values()) == [newer, *things[2:]]
    assert shelf.get(things[1].meta.key) is None
    assert things[1].meta.key not in shelf
    assert len(shelf) == len(things) - 1


def test_only_what_was_touched_last_is_kept_unpacked():
    shelf = CompressedStore(CONFIG_MAP.type)
    for number in range(RECENT_MAX * 2):
        shelf[ObjectKey("ns", f"c{number}")] = config(number)
    assert (
        shelf[ObjectKey("ns", f"c{RECENT_MAX * 2 - 1}")] is shelf[ObjectKey("ns", f"c{RECENT_MAX * 2 - 1}")]
    )
    assert len(shelf._recent) == RECENT_MAX


def test_what_is_like_the_first_ones_takes_hardly_any_room():
    shelf = CompressedStore(CONFIG_MAP.type)
    long = "what all of them say, and each at some length; " * 20
    for number in range(SAMPLED * 4):
        shelf[ObjectKey("ns", f"c{number}")] = config(number, f"{long}{number}")
    assert max(map(len, shelf._pressed.values())) < len(long) / 10
    # Those that were there before the sample was taken are still what they were.
    shelf._recent.clear()
    assert [thing.data["text"] for thing in shelf.values()] == [
        f"{long}{number}" for number in range(SAMPLED * 4)
    ]


@given(st.lists(st.tuples(st.integers(0, 12), st.none() | st.text(max_size=40)), max_size=60))
def test_a_shelf_holds_what_a_dictionary_would(steps: list[tuple[int, str | None]]):
    shelf, plain = CompressedStore(CONFIG_MAP.type), dict[ObjectKey, ConfigMap]()
    for number, text in steps:
        key = ObjectKey("ns", f"c{number}")
        for one in (shelf, plain):
            if text is None:
                one.pop(key, None)
            else:
                one[key] = config(number, text)
        shelf._recent.clear()
        assert list(shelf.items()) == list(plain.items())
