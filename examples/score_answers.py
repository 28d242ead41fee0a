"""Score answers of a model on clean and on corrupted video: no model and no video is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jostle

QUESTION = {"question": "Which way does it go?", "options": ["left", "right"], "type": "direction"}
CLEAN = ["A", "The answer is B.", "right", "A"]  # answers of the model
NOISY = ["A", "I cannot see anything.", "left", "B"]
RIGHT = [0, 1, 1, 1]


def main(folder: Path) -> None:
    """Write a few questions and answers, and print what the corruption changed."""
    questions = folder / "questions.jsonl"
    rows = [QUESTION | {"id": f"q{i}", "video": f"v{i}", "answer": answer} for i, answer in enumerate(RIGHT)]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, texts in (("clean", CLEAN), ("noisy", NOISY)):
        answers = folder / f"{name}.json"
        answers.write_text(json.dumps({f"q{i}": text for i, text in enumerate(texts)}))
        overall = jostle.evaluate(answers, questions).to_dict()
        print(f"{name}: {100 * overall['accuracy']:.0f} % right, {overall['unreadable']} unreadable")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
