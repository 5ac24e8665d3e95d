"""Every error in the source has a code that can be explained, and one family per code."""

from pathlib import Path

from tools.error_codes import Raised, raised_in

SOURCE = Path(__file__).parent.parent / "src/neorion"


def test_codes_are_a_room_and_a_word_and_belong_to_one_family():
    families: dict[str, set[str]] = {}
    for one in raised_in(SOURCE):
        room, _, word = one.code.partition(".")
        assert room.isidentifier(), one
        assert word.replace("_", "").isalnum(), one
        families.setdefault(one.code, set()).add(one.family)
    assert {code: names for code, names in families.items() if len(names) > 1} == {}


def test_an_error_and_its_words_are_found_where_they_are_raised(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "class Sunk(Terminal):\n"
        "    def __init__(self):\n"
        "        super().__init__('ship.sunk', f'The {self.ship} sank.')\n"
        "raise Sunk('This is no code.')\n"
        "raise NotFound('ship.lost', f'No {len(ships)} ' + 'ships.', hint='Look again.')\n"
        "raise ValueError('not.ours', 'x')\n"
    )
    assert raised_in(tmp_path) == [
        Raised("ship.lost", "not_found", "No ‹ships› ships.", "Look again."),
        Raised("ship.sunk", "terminal", "The ‹ship› sank.", ""),
    ]
