"""Draws the Mermaid diagrams of the documentation while it is built.

The pages hold finished pictures, so a reader's browser needs neither a script nor the network.
"""

import hashlib
from typing import Any

from mermaidx import render  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType] -- it has no types


def draw(source: str, *_: Any, **__: Any) -> str:  # noqa: ANN401 -- the rest of what pymdownx.superfences gives a formatter
    """A fence as a picture. Its id is its own, because the style sheets inside share one page."""
    name = f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    picture = str(render(source).svg()).replace("my-svg", name)
    # Dark lines need a light ground in the dark scheme too.
    return f'<div style="background: white; padding: 1em">{picture}</div>'
