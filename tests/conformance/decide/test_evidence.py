"""No single byte of a run can change unseen."""

import hypothesis
from hypothesis import strategies as st

from neorion.conformance.decide.evidence import GENESIS, link, read_chain

entries = st.lists(
    st.dictionaries(
        st.text(max_size=6),
        st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=20), st.none()),
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)


def written(found: list[dict[str, object]]) -> tuple[bytes, str]:
    content, head = b"", GENESIS
    for entry in found:
        line, head = link(head, entry)
        content += line
    return content, head


@hypothesis.given(entries)
def test_an_unchanged_chain_is_read_whole(found: list[dict[str, object]]):
    content, head = written(found)
    chain = read_chain(content)
    assert (chain.head, chain.entries, chain.problems) == (head, found, [])


@hypothesis.given(entries, st.data())
def test_every_change_of_one_byte_is_found(found: list[dict[str, object]], data: st.DataObject):
    content, head = written(found)
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    changed = content[:place] + bytes([other]) + content[place + 1 :]
    chain = read_chain(changed)
    assert chain.problems or chain.head != head


@hypothesis.given(entries, st.data())
def test_a_line_that_is_left_out_is_found(found: list[dict[str, object]], data: st.DataObject):
    content, head = written(found)
    lines = content.splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 1))
    chain = read_chain(b"".join(lines[:place] + lines[place + 1 :]))
    assert chain.problems or chain.head != head
