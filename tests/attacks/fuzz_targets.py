"""The parsers that read what others write, by name."""

from typing import Final

from tests.attacks.fuzz_archives import ARCHIVE_TARGETS
from tests.attacks.fuzz_files import FILE_TARGETS
from tests.attacks.fuzz_network import NETWORK_TARGETS
from tests.attacks.fuzz_target import Target

TARGETS: Final[dict[str, Target]] = {**NETWORK_TARGETS, **ARCHIVE_TARGETS, **FILE_TARGETS}
