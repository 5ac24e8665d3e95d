"""The documentation site, built as for readers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(240)
def test_the_site_is_built_with_its_diagrams_and_guides_before_decisions(tmp_path: Path):
    # Strict: a broken link fails, and so does a page that the navigation does not list.
    command = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    states = (tmp_path / "reference/states.html").read_text()
    source = (ROOT / "docs/reference/states.md").read_text()
    assert len(re.findall(r'<svg id="diagram-', states)) == source.count("```mermaid") > 0
    # Otherwise the theme would fetch a script to draw them.
    assert 'class="mermaid"' not in states
    headings = re.findall(r"^  - ([A-Z]\w+)", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert headings.index("Jobs") < headings.index("Decisions")
