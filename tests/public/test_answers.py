"""Answers of language models as people read them: a letter, or unreadable, and never the wrong letter."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

import jostle

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "language"
OPTIONS = ("walks left", "walks right", "jumps", "sits")

# What a model may write, and the letter that a person takes from it.
READABLE = {
    # letters and their dress
    "B": "B", "b": "B", "b.": "B", "(B)": "B", "(b)": "B", "[B]": "B", "[[B]]": "B", "{B}": "B", '"B"': "B",
    "'B'": "B",
    "**B**": "B", "`B`": "B", "*B*": "B", "__B__": "B", "Ｂ": "B", "（Ｂ）": "B", "\ufeffB": "B",
    "\u200bB\u200b": "B",
    "Ⓑ": "B", "🅱": "B", "【B】": "B", "B.\n": "B", "B)": "B", "B:": "B", "- B": "B", "> B": "B", "### B": "B",
    "#### B": "B", "<b>B</b>": "B", "$B$": "B", "\\text{B}": "B", "\\(B\\)": "B", "B</s>": "B",
    "B<|im_end|>": "B",
    "The answer is **B**.": "B", "Best option:(C": "C", "Best option: (C": "C", "B B": "B", "B.\n\nB": "B",
    # tags, boxes, JSON
    "<answer>B</answer>": "B", "<answer> (B) </answer>": "B", "<answer>B. walks right</answer>": "B",
    "<ANSWER>B</ANSWER>": "B", "<answer>B": "B", "B</answer>": "B", "<choice>C</choice>": "C",
    "<final_answer>C</final_answer>": "C", "&lt;answer&gt;B&lt;/answer&gt;": "B",
    "He turns.\n<answer>The answer is B</answer>": "B", "\\boxed{C}": "C", "$\\boxed{C}$": "C",
    "\\boxed{\\text{C}}": "C", "$$\\boxed{\\textbf{(C)}}$$": "C", "A is wrong, so \\boxed{D}.": "D",
    "<|begin_of_box|>B<|end_of_box|>": "B", '{"answer": "C"}': "C", '```json\n{"answer": "C"}\n```': "C",
    '{"reasoning": "It is not A, it may be B", "answer": "C"}': "C", "{'answer': 'C'}": "C", '["C"]': "C",
    '{"Final Answer": "(C) jumps", "confidence": 0.9}': "C", '{"A": false, "B": true, "C": false}': "B",
    'Here it is:\n```json\n{"choice": "D"}\n```': "D", '{"answer": "B", "reason": "he tu': "B",
    # thinking
    "<think>It could be A. The answer is A.</think>C": "C", "<think>A?</think>\n\nThe answer is C.": "C",
    "<think>He sits.</think><answer>D</answer>": "D", "It looks like A at first. </think> C": "C",
    "<thinking>A or B</thinking>\n(B)": "B", "◁think▷A or B◁/think▷B": "B", "[THINK]A or B[/THINK]B": "B",
    "<think>A</think> <think>B</think> C": "C", "<think></think>D": "D",
    "<|channel|>analysis<|message|>Is it A?<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>": "B",
    # a label and words
    "B. walks right": "B", "B) walks right": "B", "B: walks right": "B", "B - walks right": "B",
    "B, walks right": "B",
    "B walks right": "B", "(B) walks right": "B", "(B) He walks right.": "B", "B. walks ri": "B",
    "Option B": "B",
    "option b": "B", "Option (B)": "B", "B) because he turns": "B", "B because A is wrong": "B",
    "B.\nHe turns.": "B",
    "B\n\nA man turns around.": "B", "B\n\nExplanation: Option A does not fit.": "B", "walks right (B)": "B",
    "walks right": "B", "He walks right.": "B", "A person walks left": "A", "A person sits.": "D",
    "A walks left": "A",
    # sentences
    "Answer: B": "B", "**Answer:** B": "B", "**Answer**: B": "B", "Answer:\nB": "B", "Answer\nB": "B",
    "ANSWER: (B)": "B",
    "answer: b": "B", "Answer: A": "A", "Final answer: B": "B", 'Final answer: "B"': "B", "Answer - B": "B",
    "The answer is B": "B", "The answer is (B).": "B", "The answer is A because he turns": "A",
    "the answer is a.": "A",
    "The correct answer is option D.": "D", "The correct answer to this question is B.": "B",
    "Based on the video, the answer is C.": "C", "Based on the frames, C.": "C",
    "The best answer is (A) walks left": "A",
    "C is the correct answer.": "C", "C is correct.": "C", "(C) is right.": "C",
    "Option C is the best choice.": "C",
    "Option C best describes the video.": "C", "C it is.": "C", "C is my answer": "C", "I choose B.": "B",
    "I'd go with B.": "B", "I would pick option B": "B", "I think the answer is probably D": "D",
    "I think it's B.": "B",
    "My choice is C.": "C", "So D.": "D", "Therefore, the answer is D": "D", "Hence (D).": "D",
    "It must be D.": "D",
    "It is C.": "C", "He turns around -> B": "B", "∴ B": "B", "The answer would be B.": "B",
    "Answer is: C": "C",
    "A man is walking. Answer: B": "B", "Definitely B!": "B", "Sure! The answer is B.": "B",
    "Yes, it is B.": "B",
    "If I had to choose, I'd say B.": "B", "There is no doubt that the answer is B.": "B",
    "I'm not sure, but I'd say B.": "B", "The correct option among these is B.": "B",
    # denials of others, second thoughts
    "Neither A nor B, so C": "C", "Not A, not B, so C.": "C", "Not A but B": "B", "It's not A, it's B.": "B",
    "B, not A": "B", "The answer is B, not A.": "B", "B and not A": "B", "B rather than A": "B",
    "Not (A). (B).": "B",
    "The answer is not A. The answer is C.": "C", "A is wrong. The answer is B.": "B",
    "A is incorrect, B is correct.": "B",
    "A and C are wrong, B is wrong too, which leaves D.": "D", "B is better than A.": "B",
    "A is right and B is wrong": "A",
    "Unlike option A, he does not move, so D.": "D", "The answer is A? Hmm, no - B.": "B",
    "The answer is A. Wait, no, it's B.": "B", "A. Actually, B.": "B", "~~A~~ B": "B",
    "A or B? I'd go with B.": "B",
    "A) no B) no C) yes": "C", "A: wrong\nB: wrong\nC: correct\nD: wrong": "C", "A ✗ B ✓ C ✗ D ✗": "B",
    "A. false\nB. true": "B", "My first guess was A. Final answer: B": "B", "[ ] A\n[x] B\n[ ] C": "B",
    "A. walks left\nB. walks right\nC. jumps\nD. sits\nAnswer: C": "C",
    "B\n\nQuestion: What next?\nAnswer: C": "B",
    "A) walks left: no, he turns.\nB) walks right: yes.\nThe answer is B": "B",
    # other languages
    "答案是B。": "B", "答案:B": "B", "答案：Ｂ": "B", "选B": "B", "正确答案为C": "C", "B选项正确": "B",
    "正解はBです。": "B",
    "정답은 B입니다.": "B", "정답: B": "B", "Ответ: B": "B", "Правильный ответ — B.": "B",
    "La respuesta correcta es B.": "B",
    "Respuesta: B": "B", "La respuesta es la B.": "B", "Réponse : B": "B", "La bonne réponse est B.": "B",
    "Antwort: B": "B",
    "Die richtige Antwort ist B.": "B", "A resposta é B.": "B", "Resposta: B": "B", "La risposta è B.": "B",
    "Cevap: B": "B", "Đáp án: B": "B", "Jawaban: B": "B", "الإجابة: B": "B", "उत्तर: B": "B",
    "Antwoord: B": "B", "我认为是B": "B",
    # one within the other, lists of verdicts, struck out
    "<answer>\\boxed{B}</answer>": "B", "<answer>\n\\boxed{B}\n</answer>": "B", "\\boxed{<answer>B</answer>}": "B",
    '<answer>{"answer": "B"}</answer>': "B", "B? No. C? No. D? Yes.": "D", "<s>A</s>B": "B", "<del>A</del> B": "B",
    '{"answer": "B", "correct": true}': "B", "2. B": "B", "Great! B": "B",
}  # fmt: skip

# What no letter can be taken from.
UNREADABLE = (
    "", "   ", "(", "()", "!!!!!!!!!!!!!!!!", "E", "(E)", "The answer is E", "2", "AB", "ABCD",
    "<answer></answer>", "\\boxed{}",
    # denials
    "not (A)", "Not A.", "(A) is wrong.", "A is wrong", "A is not correct.", "A isn't right",
    "The answer cannot be (A).",
    "The answer can't be A", "I don't think the answer is A.", "I do not believe it is A.",
    "It isn't option B.",
    "The answer is not A.", "Neither A nor B.", "Anything but A.", "All but C are wrong.",
    "I would not go with B.",
    "I wouldn't choose B.", "I doubt that it's B.", "Option A can be eliminated.", "I ruled out A.",
    "Rule out (A).",
    "Unlike option A, he does not move.", "A: no", "A) no.", "A. Wrong.", "A. is wrong",
    "The wrong answer is A.",
    "Incorrect: B", "The least likely option is B.", "It is not A, B.", "Not A, B, or C.",
    "<answer>not A</answer>",
    "The answer is (A) is false.", "No, not (A)", "A ❌", "It is impossible that the answer is A.",
    "答案不是A。", "不选A", "no A", "A nor B", "!A", "!= A", "A≠", "A - nah", "A, I don't think so.", "A... not really",
    "<answer>A</answer> is wrong", '{"option": "A", "correct": false}', '{"prediction": "A", "valid": false}',
    "The answer is not only A but also B.", "My second choice is A", "According to option A, he walks left.",
    "The naive answer is A.", "e.g. A", "e.g., option A", "The video rules out A.", "Don't pick A.",
    "A is a distractor.",
    "A fails because he turns.", "Far from A.", "I'd never say A.", "B beats A", "A is worse than B", "A loses to B",
    "A不正确", "La respuesta no es A.", "Die Antwort ist nicht A.", "La réponse n'est pas A.", "Ответ не A.",
    # retractions
    "The answer is A. No.", "The answer is A. Wait, that's wrong.", "A... no wait", "Answer: A. Scratch that.",
    "The answer is A. Actually, I take that back.", "A. Correction: none.", "<answer>A</answer> Wait, it is B.",
    # several
    "A or B", "(A) or (B)", "A and B", "A, B", "A/B", "A & B", "A B", "A\nB", "Both A and B", "Either A or B.",
    "The answer is A or B", "The answer is B and C", "Answer: A, B", "Answer: C\nAnswer: B",
    "<answer>A or B</answer>",
    "<answer>A</answer><answer>B</answer>", '{"answer": ["A", "B"]}', "The answer is either (A) or (B).",
    "A. Or B.", "1. A 2. B", "1. A\n2. B", "A (10%), B (90%)", "A: 10%\nB: 80%\nC: 5%\nD: 5%", "A + B", "A|B",
    "\\boxed{A} or \\boxed{B}", "<answer>A</answer> ... <answer>B</answer>", "B > A > C > D",
    "B, maybe C", "A, C and D are all possible.", "A → B", "答案是A或B", "A o B", "A oder B", "A ou B", "A、B",
    "A. walks left\nB. walks right\nC. jumps\nD. sits", "he walks left or walks right", "A. walks right",
    "The answer is B) walks left", "It could be A or it could be B.", "(A) looks plausible, but so does (B).",
    # questions, conditions, others' words
    "Is it A?", "A? B? C?", "Is the answer (A) or not?", "If he had jumped, the answer would be C.",
    "It is unclear whether the answer is A.", "Some would say the answer is A.", "At first I thought A.",
    "(A) looks plausible, but he turns.", "One might think it is A.",
    # thinking that does not end, and ends with nothing
    "<think>The answer is A", "<think>It is A, no, B", "<think>The answer is A</think>", "<thinking>\nA\n",
    "<|channel|>analysis<|message|>The answer is A",
    # all, none, refusals, other letters
    "All of the above", "None of the above", "Both", "Cannot Be Determined",
    "I'm sorry, I can't assist with that.",
    "I don't know.", "A person waits.", "The answer is a dog", "The answer is A dog",
    "He takes vitamin C and a plan B",
    "The video shows bottles of vitamin C and a plan", "It does not jump, he sits", "Plan B", "U.S.A.",
    "He is on team A.",
    "The sign shows the letter C on a wall", "X", "A man", "I see a man.", "As an AI I cannot watch videos.",
)  # fmt: skip


def read_letters(folder: Path, texts: list[str], options: tuple[str, ...] = OPTIONS) -> list[str | None]:
    """Return the letter that is read from each text, by evaluating a file of answers against each letter."""
    rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    (folder / "answers.json").write_text(json.dumps(rows), encoding="utf-8")
    letters: list[str | None] = [None] * len(texts)
    for k, option in enumerate(options):
        questions = [
            {"id": str(i), "video": "v", "question": "Q?", "options": options, "answer": k, "type": str(i)}
            for i in range(len(texts))
        ]
        (folder / "questions.json").write_text(json.dumps(questions))
        score: Any = jostle.evaluate(folder / "answers.json", folder / "questions.json")
        for i in range(len(texts)):
            if score.by_type[str(i)].correct:
                letters[i] = "ABCDEFGHIJ"[k]
            assert score.by_type[str(i)].unreadable in (0, 1), option
    return letters


def test_answers_are_read_as_a_person_reads_them(tmp_path: Path) -> None:
    expected: dict[str, str | None] = {**READABLE, **dict.fromkeys(UNREADABLE)}
    assert len(expected) == len(READABLE) + len(UNREADABLE) >= 80
    letters = read_letters(tmp_path, list(expected))
    wrong = {
        text: (letter, wanted)
        for (text, wanted), letter in zip(expected.items(), letters, strict=True)
        if letter != wanted
    }
    assert wrong == {}


def test_options_that_are_letters_go_by_their_label(tmp_path: Path) -> None:
    options = ("A.", "F.", "B.", "K.")
    texts = ["B.", "B", "(B)", "The answer is B.", "C. B.", "C", "F", "K.", "B. F.", "They eat B."]
    assert read_letters(tmp_path, texts, options) == ["B", "B", "B", "B", "C", "C", "B", "D", "B", None]


def test_yes_and_no_are_read_by_their_first_word(tmp_path: Path) -> None:
    texts = [
        "Yes.",
        "No, he does not.",
        "no",
        "Yes, he does. No dog is seen.",
        "Not sure",
        "Yes and no",
        "No, wait, yes.",
    ]
    assert read_letters(tmp_path, texts, ("yes", "no")) == ["A", "B", "B", "A", None, None, "A"]


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="real answers are their owners': none at ../shared/golden")
@pytest.mark.parametrize(
    ("run", "right", "unreadable"),
    [("all_zero", 1605, 2), ("selected_frames_ASK_8_updated", 1607, 1), ("selected_frames_dbfp1", 1608, 0)],
)
def test_lmms_eval_runs_score_as_published(tmp_path: Path, run: str, right: int, unreadable: int) -> None:
    folder = GOLDEN / "lmms-eval"
    (samples,) = (folder / run).glob("*/*_samples_videomme.jsonl.gz")
    with gzip.open(samples, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    (tmp_path / "answers.jsonl").write_text(
        "\n".join(
            json.dumps({"id": row["videomme_perception_score"]["question_id"], "text": row["filtered_resps"][0]})
            for row in rows
        )
    )
    score: Any = jostle.evaluate(tmp_path / "answers.jsonl", folder / "videomme.json.gz")
    assert (score.overall.count, score.overall.correct, score.overall.unreadable) == (2700, right, unreadable)


def test_long_answers_are_read_in_no_time(tmp_path: Path) -> None:
    texts = ["A " * 9000, "- " * 9000, "A, " * 6000, "<think>" * 3000, "not A, " * 2500, "the answer is " * 1400]
    began = time.monotonic()
    assert read_letters(tmp_path, [*texts, "so " * 5000 + "B"])[-1] == "B"
    assert time.monotonic() - began < 60
