"""What the sides share: a line comes in, the work is done, its seconds go out."""

import json
import os
import sys
import time

# Whatever libraries print must not be taken for an answer.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def serve(works):
    answers.write("0\n")
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        works[asked["work"]](asked["count"])
        answers.write(f"{time.perf_counter() - began}\n")
