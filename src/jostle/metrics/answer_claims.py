"""Clauses of running text: which labels of options they claim, deny or only mention.

Labels are marked by `answer_labels.mark_labels`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jostle.metrics.answer_labels import ANY, index_of, indices_in


@dataclass(frozen=True)
class Reading:
    """What the clauses of a text say about labels.

    Attributes:
        decided: whether they settle the choice, also as none.
        choice: the option that they claim.
        named: the only option that they name, where none is claimed and nothing speaks against it.
        withdrawn: whether something was taken back.
    """

    decided: bool
    choice: int | None = None
    named: int | None = None
    withdrawn: bool = False


_ANSWER = (
    r"(?:\b(?:answers?|ans|options?|choice|letter|selection|response|solution|pick|guess|verdict|conclusion"
    r"|prediction|match"
    r"|statement|description|caption|sentence|one|respuesta|opci[oó]n|r[ée]ponse|antwort|l[öo]sung|risposta|opzione"
    r"|resposta"
    r"|opção|antwoord|ответ|вариант|відповідь|odpowied[źz]|odpov[ěe][ďd]|svar|vastaus|cevap|yan[ıi]t|jawaban|đáp án"
    r"|câu trả lời"
    r"|răspuns(?:ul)?|válasz|απάντηση)\b|คำตอบ|उत्तर|الإجابة|الجواب|إجابة|תשובה|پاسخ|উত্তর|答案|正解|解答|回答|答え?"
    r"|正确选项|정답|답변|답)"
)
_IS = (
    r"(?:\b(?:is|are|was|would be|should be|must be|will be|has to be|ought to be|es|est|ist|sería|jest|je|är|er"
    r"|adalah|là"
    r"|является|это|lautet|será)\b|\bè|\bé(?!\w)|'s\b|[:=\-–—]|->|→|=>|是|为|為|は|은|는|คือ|है|هو|هي|:)"
)
_FILLERS = (
    r"\b(?:so|therefore|thus|hence|consequently|then|ok|okay|well|sure|yes|yeah|and|the|an?|my|our|your|final|finally"
    r"|correct|right"
    r"|best|most|likely|probable|accurate|suitable|appropriate|fitting|answers?|ans|option|choice|letter|alternative"
    r"|selection"
    r"|response|pick|guess|verdict|conclusion|match|is|it|its|it's|that's|this|that|be|would|must|should|will|has to"
    r"|have to|only|output|result|assistant|i|i'd|i'll|i'm"
    r"|we|think|believe|guess|say|choose|pick|select|go|going|with|opt|for|probably|definitely|clearly|obviously"
    r"|certainly"
    r"|surely|simply|here|indeed|based on|in|video|frames|clip|given|above|mostly|confident|very|quite|pretty"
    r"|la|el|le|les|l|lo|der|die|das|de|es|est|c'est|ist|è|é|o|eu|ich|je|yo|respuesta|correcta|opci[oó]n|opção"
    r"|opzione|r[ée]ponse|bonne"
    r"|correcte|antwort|richtige|richtig|lösung|risposta|corretta|resposta|correta|antwoord|juiste|het|ответ|вариант"
    r"|правильный|это"
    r"|відповідь|odpowied[źz]|odpov[ěe][ďd]|svar|vastaus|cevap|doğru|yan[ıi]t|jawaban|yang|benar|adalah|đáp án|đúng"
    r"|là|câu trả lời"
    r"|opcja|option|lettre|letra|lettera|buchstabe|also|donc|entonces|alors)\b"
    r"|'s\b|คำตอบ|ที่ถูกต้อง|คือ|उत्तर|सही|है|الإجابة|الصحيحة|الجواب|إجابة|هو|هي|תשובה|پاسخ|উত্তর|正确答案|答案"
    r"|正确选项|正确|选项|选择|選択肢"
    r"|正解|解答|回答|答え?|应该|應該|认为|認為|觉得|覺得|所以|因此|故|我|选|選|是|为|為|です|だ|は|が|정답|답변|답|입니다|이다|은|는|항|项"
)
_GOOD = (
    r"(?:correct|right|best|better|true|accurate|answers?|choice|option|winner|most|more (?:likely|accurate"
    r"|plausible)|likel(?:y|iest)"
    r"|closest|valid|one|yes|richtig|korrekt|correcta?|correcte?|corretta|correta|juist|верн\w*|правильн\w*|doğru|✓|✔"
    r"|✅|☑)"
)
_GOOD_CJK = r"(?:是)?(?:正确|对的|正しい|正解|맞습니다)"
_BAD = (
    r"(?:not|no|isn't|wasn't|aren't|can't|cannot|doesn't|does not|won't|wrong|incorrect\w*|false|untrue|invalid"
    r"|inaccurate|out"
    r"|impossible|unlikely|implausible|eliminated|excluded|nope|falsch|fals[oa]|faux|fausse|incorrecta?|errad[oa]"
    r"|sbagliat[oa]|yanlış)"
)
_NO = re.compile(
    r"\b(?:not|never|neither|nor|no|none|nothing|without|unlike|except|besides|exclud\w*|eliminat\w*|rul(?:e|es|ed"
    r"|ing)\b.{0,12}\bout"
    r"|reject\w*|discard\w*|dismiss\w*|avoid\w*|ignor\w*|skip\w*|wrong\w*|incorrect\w*|false\w*|untrue|mistak\w*"
    r"|error|invalid"
    r"|inaccurate|impossible|improbable|unlikely|implausible|doubt\w*|den(?:y|ies|ied)|disagree\w*|contradict\w*"
    r"|far from|least|less"
    r"|worst|worse|instead|rather|anything but|all but|opposite|distractor|trap|hardly|refut\w*|disprov\w*|fails?"
    r"|failed|lacks?|cannot|cant"
    r"|dont|isnt|wouldnt|cross(?:ed)? out|nein|nicht|kein\w*|falsch\w*|non|pas|faux|fausse|não|nao|nunca|errad[oa]"
    r"|sbagliat[oa]|niet"
    r"|не|нет|неверн\w*|неправильн\w*|nie|değil|yanlış|bukan|tidak|salah|không)\b|n't\b|不(?!错)|非(?!常)|没|沒|错|錯"
    r"|誤|ない|아니|틀|❌|✗|✘|×|ليس",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:might|may|could|maybe|perhaps|possibl[ye]|whether|if|unless|suppos\w*|assum\w+|imagine|hypothetical\w*"
    r"|at first|initial(?:ly)?|first"
    r"|glance|seemingly|apparently|thought|some|someone|people|others|many|almost|nearly|partly|partially|tempting"
    r"|plausible|had|were"
    r"|would have|either|both|between|examples?|e\.g|such as|format|respond|reply|instructions?|says|said|(?:can|one"
    r"|people|to) say|asks?|asked|claims?|suggests?"
    r"|chose|wanted|used to|according to|naive"
    r"|(?:second|third|next|backup) (?:best )?(?:choice|guess|option|pick|answer)|previously|originally"
    r"|vielleicht|quizás?|peut-être|talvez|forse)\b|可能|也许|或许",
    re.IGNORECASE,
)
_IDIOMS = re.compile(
    r"\b(?:there(?: is|'s) )?(?:no|without(?: an?)?|beyond|little) (?:doubt|question)(?: that)?\b|\bundoubtedly\b"
    r"|\bnot surprisingly\b"
    r"|\bif i (?:had|have|were|was|must|need)(?: to| forced to)? (?:choose|pick|guess|answer|select|decide)(?: one)?\b"
    r"|\b(?:i'm|i am) not (?:entirely |completely |fully |100% )?(?:sure|certain)\b|\bnot (?:sure|certain)\b"
    r"|\bfirst of all\b",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"^\W*(?:(?:hmm+|oh|uh|um|well|but)\W+)*(?:no(?=\s*[,.!;:\-–—…]|\s+(?:wait|it|that|actually|i\b|not|the)|\s*$|\s*"
    + ANY
    + ")"
    r"|nope|nah\b|not (?:really|quite|exactly)|i (?:don't|do not) think(?: so)?(?=\W*$)"
    r"|i doubt (?:it|that|so)(?=\W*$)|wait|hold on|actually|correction|scratch that"
    r"|on (?:second thought|reflection)|sorry|oops|my mistake"
    r"|i meant?(?! to)"
    r"|let me (?:re|think|correct|check|look|consider)|i(?:'m| am| was) (?:wrong|mistaken)|(?:that|this|it)(?:'s| is"
    r"| was)"
    r" (?:wrong|incorrect|false|not (?:right|correct|true|it))|just kidding|strike that|never ?mind|or rather"
    r"|make that|i take (?:that|it) back"
    r"|i(?:'ve)? changed? my mind|(?:is|was) (?:wrong|incorrect|false|not)|(?:wrong|incorrect|false|not (?:correct"
    r"|right|true))(?=\s*(?:[.,!;\-–—]|$))|nein|moment|espera|attends?|✗|✘|❌|×|不对|等等|不,)",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"\b(?:final(?:ly)?|in conclusion|to conclude|ultimately|overall|in summary|in the end)\b", re.IGNORECASE
)
# Of a gap there is one way to match only, and lists are no longer than options: they would take exponential time.
_LIST = (
    rf"{ANY}(?:[\s,/&|]*(?:(?:\b(?:and|or|nor|y|o|u|et|ou|oder|und|e)\b|或者?|和|还是|か|と)[\s,/&|]*)?{ANY}){{0,25}}"
)
_ADVERBS = (
    r"(?:\s*\b(?:be|really|actually|necessarily|the|option|likely|probably|clearly|definitely|completely"
    r"|also|all|both|just|been|correct)\b)*\s*"
)
_DENIED = re.compile(
    rf"(?:\b(?:and|but|is|it's|it is)\s+)?(?:\b(?:not|never|neither|nor|rather than|instead of|unlike|(?:anything|all"
    rf"|everything|nothing|none) but|except(?: for)?|excluding|ruling out"
    rf"|other than|than|over|without|nicht|pas|niet|не|eliminat\w+|rul(?:e|es|ed|ing) out|exclud\w+|reject\w*"
    rf"|discard\w*|dismiss\w*)\b|n't\b|不(?:是|选|選)?|[!~≠¬])[^\S\n]*{_ADVERBS}(?P<denied>{_LIST})",
    re.IGNORECASE,
)
_NOR = re.compile(
    rf"(?:\b(?:neither|not)\s+)?(?P<denied>{ANY}(?:\s*,\s*{ANY}){{0,25}}\s*,?\s*\bnor\s+{ANY})", re.IGNORECASE
)
_BOTH = re.compile(
    rf"\bnot (?:only|just|merely|simply)\s+({ANY}),?\s*but(?:\s+(?:also|both))?\s+({ANY})", re.IGNORECASE
)
_JUDGED_BAD = re.compile(
    rf"(?P<denied>{_LIST})[\s).:\-–=]*(?:\b(?:is|are|was|were|looks?|seems?|would be|can be|must be|ist|est|es"
    rf"|has been|have been)\b|'s\b)?"
    rf"{_ADVERBS}(?:\b{_BAD}\b|[✗✘❌×≠]|\w{{0,3}}\s?(?:不|错|是错|誤|ではな|ではありませ|じゃな|아니|아닙|틀))",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"(?:\b(?:among|amongst|between|out of|from|of)\s+(?:options?\s+)?|\b(?:options"
    rf"|choices)\s*(?:are)?\s*:\s*){ANY}(?:[\s,]*{ANY})*"
    rf"(?:[\s,]*\b(?:and|or)\b\s*{ANY})?",
    re.IGNORECASE,
)
_DECLARED = re.compile(
    rf"{_ANSWER}[^\ue000-\ue13f.;!?\n]{{0,60}}?{_IS}\s*(?:{_FILLERS}|[\s:\"'(\[])*(?P<label>{ANY})", re.IGNORECASE
)
_CHOSEN = re.compile(
    rf"\b(?:choose|pick|select|go(?:ing)? (?:with|for)|opt for|settle (?:on|for)|lean(?:ing)? (?:towards?|to)"
    rf"|vote (?:for|goes to)|stick with|conclude|answer|say|choosing"
    rf"|selecting|picking)(?: that)?\s*(?:{_FILLERS}|[\s:\"'])*(?P<label>{ANY})",
    re.IGNORECASE,
)
_POINTED = re.compile(
    rf"(?:\b(?:it|this|that|which)(?:'s| is| was| must be| has to be| should be| would be)|\b(?:must|has to"
    rf"|can only) be|\b(?:leaving|leaves)(?: us)?"
    rf"(?: with)?(?: only)?)\s*(?:{_FILLERS}|\s)*(?P<label>{ANY})",
    re.IGNORECASE,
)
_JUDGED_GOOD = re.compile(
    rf"(?P<label>{ANY})[\s).:\-–=]*(?:\b(?:is|was|must be|has to be|should be|would be|ist|est|es)\b"
    rf"|'s\b)?\s*(?:{_FILLERS}|\bbest\b|\bonly\b|\s)*?"
    rf"(?:(?<!\w){_GOOD}(?!\w)|{_GOOD_CJK}|\b(?:remains|is left|it is)\b)",
    re.IGNORECASE,
)
_FITS = re.compile(
    rf"(?P<label>{ANY})\s*(?:\b(?:best|clearly|most|more|accurately|correctly|closely|exactly)\b\s*)*"
    rf"\b(?:fits?|matches|describes|captures|reflects|represents|summari[sz]es|explains|corresponds|aligns|works"
    rf"|applies|wins|(?:seems|looks|appears)"
    rf"(?: to be)?(?: the)? (?:most )?(?:correct|right|best|likely|accurate))\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[.!?;])(?=[\ue000-\ue13f])|\n+")
_CLAUSE = re.compile(
    rf"(?:,|;|(?<={ANY})\s*[).]?\s*:|\s[-–—]+\s|[—()]|->|→|=>|⇒|∴|\.{{2,}}|…"
    r"|\b(?P<word>because|since|as(?=\s+(?:he|she|the|it|in|they|this|that|we|you|an?|there)\b)|so|therefore|thus"
    r"|hence|but|while|whereas"
    r"|although|though|however|which|given|due|when|where|after|before)\b"
    rf"|\b(?P<and>and)(?=\s+{ANY}\s+(?:is|isn't|was|are|does|seems)\b))"
)
_GROUNDS = frozenset(
    (
        "because",
        "since",
        "as",
        "while",
        "whereas",
        "although",
        "though",
        "given",
        "due",
        "when",
        "where",
        "after",
        "before",
        "which",
    )
)
_CONTRAST = frozenset(("but", "however", "although", "though", "while", "whereas"))
_DANGLING = re.compile(r"(?:\b(?:not|never|neither|nor|unlike|except|rather than|instead of)|n't)\W*$", re.IGNORECASE)


def takes_back(text: str) -> bool:
    """Return whether a text begins by withdrawing what stands before it, as "is wrong." does behind an answer."""
    return bool(_BACK.match(text))


def read_claims(text: str, count: int) -> Reading:
    """Read the clauses of a text whose labels are marked.

    Args:
        count: number of options; a label beyond them is claimed as none.
    """
    return _Claims(count).read(text)


class _Claims:
    """Claims of a text, clause by clause."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.claims: list[
            tuple[frozenset[int], bool]
        ] = []  # labels that a clause claims, and whether it is sure of them
        self.denied: set[int] = set()
        self.doubted = False  # whether a clause without a claim speaks against a label that is only named
        self.withdrawn = False
        self.carried = False  # whether a negation waits for its label

    def read(self, text: str) -> Reading:
        text = re.sub(
            rf"({ANY})\s*[).:]\s*(?=(?:is|isn't|was|are|cannot|can't|does|doesn't|would|seems|looks|not)\b)",
            r"\1 ",
            text,
        )
        text = re.sub(rf"(?<!{ANY})(:)\s*\n+\s*(?={ANY})", r"\1 ", text)
        text = re.sub(r"\b(?:e\.\s?g|cf)\.,?\s*", "for example ", text, flags=re.IGNORECASE)
        text = re.sub(rf"(?<![\w.])\(?\d{{1,2}}[.)]\s*(?={ANY})", ", ", text)  # "1. A 2. B"
        text = re.sub(rf"^\s*no\s+(?={ANY})|(?<!\S)!(?={ANY})", "not ", text, flags=re.IGNORECASE)
        text = _BOTH.sub(r"\1 and \2", text)
        if not re.search(ANY, text):
            return Reading(False, withdrawn=False)
        verdict = _list_of_verdicts(text)
        if verdict is not None:
            return self._settled(verdict)
        several = len(indices_in(text)) > 1
        text = _without_lists(text)
        for sentence in _SENTENCE.split(text):
            self._sentence(_IDIOMS.sub(" ", sentence))
        if self.claims:
            return self._settled(self._decide())
        explicit = {index_of(sign) for sign in re.findall("[\ue000-\ue03f]", text)}
        named = indices_in(text)
        if several:
            return Reading(True, None, None, self.withdrawn)
        if self.withdrawn or self.doubted or self.denied or len(explicit) != 1 or named != explicit:
            return Reading(False, withdrawn=self.withdrawn or self.doubted)
        (index,) = explicit
        return Reading(index >= self.count, None, index if index < self.count else None)

    def _settled(self, index: int | None) -> Reading:
        return Reading(True, index if index is not None and index < self.count else None, None, self.withdrawn)

    def _decide(self) -> int | None:
        sure = [labels for labels, certain in self.claims if certain] or [labels for labels, _ in self.claims]
        last = sure[-1]
        if len(last) != 1 or any(not last <= labels for labels in sure) or last & self.denied:
            return None
        return next(iter(last))

    def _sentence(self, sentence: str) -> None:
        asked = sentence.rstrip().endswith("?")
        tentative = bool(re.search(r"\b(?:if|unless|whether|suppose|assuming)\b", sentence, re.IGNORECASE))
        after, word = 0, ""
        for match in [*_CLAUSE.finditer(self._without_denials(sentence)), None]:
            clause = self._rest[after : match.start() if match else None]
            self._clause(clause, word, asked or tentative)
            if match:
                after, word = match.end(), (match["word"] or match["and"] or "").lower()

    def _without_denials(self, sentence: str) -> str:
        """Leave out what a sentence denies; a question denies nothing."""

        def deny(match: re.Match[str]) -> str:
            self.denied |= indices_in(match["denied"])
            self.doubted = True
            return " "

        sentence = _NOR.sub(deny, sentence)
        sentence = _DENIED.sub(deny, sentence)
        sentence = _JUDGED_BAD.sub(deny, sentence)
        self._rest = _LISTED.sub(" ", sentence)
        return self._rest

    def _clause(self, clause: str, word: str, tentative: bool) -> None:
        if _BACK.match(clause) and word not in _GROUNDS:
            self.withdrawn = self.withdrawn or bool(self.claims) or not indices_in(clause)
            self.claims.clear()
            self.denied.clear()
            clause = _BACK.sub("", clause, count=1)
        labels = frozenset(indices_in(clause))
        if not labels:
            self.carried = bool(_DANGLING.search(clause))
            self.doubted = self.doubted or (word in _CONTRAST and bool(clause.strip(" .,")))
            return
        if self.carried:
            self.denied |= labels
            self.carried, self.doubted = False, True
            return
        if tentative or _UNSURE.search(clause):
            self.doubted = True
            sure = {next(iter(one)) for one, _ in self.claims if len(one) == 1}
            if sure and not labels <= sure and not tentative:
                self.claims.append((labels, True))  # "B, maybe C"
            return
        claimed = self._claimed(clause, word)
        if claimed:
            if claimed[1] and _FINAL.search(clause):
                self.claims.clear()
            self.claims.append(claimed)
        elif _NO.search(clause):
            self.denied |= labels
            self.doubted = True

    def _claimed(self, clause: str, word: str) -> tuple[frozenset[int], bool] | None:
        """Return the labels that a clause claims, and whether it is sure; None if it claims nothing."""
        labels = frozenset(indices_in(clause))
        rest = re.sub(_FILLERS, " ", clause, flags=re.IGNORECASE)
        joined = re.sub(
            r"\b(?:and|or|nor|y|o|u|et|ou|oder|und|e)\b|或者?|和|还是|か|と", " ", rest, flags=re.IGNORECASE
        )
        if word not in _GROUNDS and not re.sub(rf"{ANY}|[\W_]", "", joined):
            return labels, True
        for pattern, certain in (
            (_DECLARED, True),
            (_CHOSEN, True),
            (_POINTED, True),
            (_JUDGED_GOOD, True),
            (_FITS, False),
        ):
            for match in pattern.finditer(clause):
                if _NO.search(clause[: match.start("label")]) or _NO.search(match[0]):
                    continue
                alone = pattern is _JUDGED_GOOD or not certain
                return (frozenset((index_of(match["label"]),)) if alone else labels), certain
        return None


def _list_of_verdicts(text: str) -> int | None:
    """Return the only label that a list of verdicts is for: "A) no B) no C) yes"; None where there is no such list."""
    parts = re.split(rf"({ANY})", text)
    verdicts: dict[int, list[bool | None]] = {}
    for k in range(1, len(parts), 2):
        after = parts[k + 1].lstrip(" \t).:?-–—=(")
        good = re.match(r"(?:yes|true|correct|right)\b|[✓✔✅☑]", after, re.IGNORECASE)
        bad = re.match(r"(?:no|false|incorrect|wrong)\b|[✗✘❌×☒]", after, re.IGNORECASE)
        verdicts.setdefault(index_of(parts[k]), []).append(True if good else False if bad else None)
    good_labels = [index for index, values in verdicts.items() if True in values]
    plain = all(len(values) == 1 and values[0] is not None for values in verdicts.values())
    return good_labels[0] if plain and len(verdicts) > 1 and len(good_labels) == 1 else None


def _without_lists(text: str) -> str:
    """Leave out the lines of a text that list the options, or say something on one after the other."""
    lines = text.split("\n")
    begins = [
        match and index_of(match[1])
        for match in (re.match(rf"\s*({ANY})\s*[).:](?=.*\S|\s*$)", line) for line in lines)
    ]
    listed = {index for index in begins if index is not None}
    if len(listed) < 2:
        return text
    return "\n".join(line for line, index in zip(lines, begins, strict=True) if index is None)
