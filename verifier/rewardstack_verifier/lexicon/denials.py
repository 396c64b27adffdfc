"""Cues that deny, suppose or withdraw an answer, one row for each language.

The cells are regular expressions without unbounded repetition and without capturing groups; `extraction.denials`
compiles them.
"""

from __future__ import annotations

from typing import NamedTuple


class Denial(NamedTuple):
    """The cues of a language.

    Args:
        before: text right before an answer, or before the phrase that announces it, which denies or only supposes or
            reports it: "wrong" answer, "suppose" the answer is, "not" (B), "Tom's" answer.
        behind: text right after an answer which denies it: "is wrong", "can be ruled out". It also counts after a
            later mention of the answer: "... so 7 is not possible".
        after: text right after an answer or its sentence which withdraws the answer: "This is wrong", "No, 6".
    """

    before: str
    behind: str
    after: str


_FALSE = "wrong|incorrect|false|invalid|mistaken|impossible"
_OUT = "ruled out|excluded|eliminated|discarded|rejected|extraneous"
_NOT_RIGHT = (
    "not (?:(?:the|a|an) )?(?:correct|right|final|valid|possible|true|allowed|acceptable|answer|solution|option|choice)"
)
_IS = r"(?:(?:is|are|was|were) |['’]s )(?:(?:also|thus|[a-z]{3,12}ly) )?"
_IS_WRONG = (
    rf"(?:{_IS}(?:{_FALSE}|{_NOT_RIGHT})|(?:is|are|was)n['’]t (?:the )?(?:correct|right|valid|possible|true|answer))\b"
)
_BUT = r"(?:(?:but|however|hmm|no|wait|actually)[,.!:…\s]{1,3}){0,3}"
_DOES_NOT = r"(?:cannot be|can['’]t be|(?:does not|doesn['’]t) (?:work|fit|hold|satisfy))"

NEGATIONS = frozenset(["not", "never", "neither", "nor", "nicht", "keine", "pas", "no", "não", "non", "не"])
"""Words between a letter and a word such as "correct" that deny the letter."""
CONTRASTS = (
    r"not X,? but(?: rather)?|nicht X,? sondern|(?:n['’]est )?pas X,? mais|no (?:es )?X,? sino"
    r"|não (?:é )?X,? (?:mas|e) sim|non (?:è )?X,? (?:ma|bensì)|не X,? а|不是X[,，]?而是|Xではなく|X(?:이|가)? 아니라"
)
"""Words that deny the letter X and choose the one behind them: "not X but"."""
DENIALS = {
    "en": Denial(
        before=rf"\b(?:{_FALSE}|not(?: be)?|cannot be|never|neither|nor|none of|all but|if|whether|suppose|supposing"
        r"|assum(?:e|ing)|imagine|pretend|thought|check:|had to guess,|exclude|eliminate|discard|reject|rule out|unlike"
        r"|instead of|rather than)"
        r"|n['’]t(?: be)?|(?:\bnot|n['’]t) (?:say|think|believe|choose|pick)"
        r"|\bif\b[^.;\n]{1,60}\b(?:were|had|did)\b[^.;\n]{0,40},"
        r"|\b(?:might|may|could|would) (?:guess|think|believe)|\blet['’]s (?:say|guess|try)|(?:\A|[.!?\n] ?)say"
        r"|\b(?:some|many|others|people|students|you|they|nobody|no one) (?:say|think|claim|believe)"
        r"|(?<!\bI )(?<!\bwe )\b(?:says|said|claims|claimed|believes|believed|thinks)"
        r"|\b(?:his|her|their|(?!(?:problem|question|exercise|puzzle|task|riddle|part|here|it|that|today|answer|option"
        r"|choice|he|she|there|what|who|let)['’])[a-z]+['’]s)(?: own)?",
        behind=rf"(?:(?:which|(?:but|and) (?:that|it|this)) )?{_IS}(?:{_FALSE}|{_OUT}|{_NOT_RIGHT}"
        rf"|too (?:large|small|high|low)|an? (?:trap|distractor|mistake))\b|\((?:{_FALSE}|{_OUT}|{_NOT_RIGHT})"
        rf"|can be (?:{_OUT})|(?:fails|contradicts|violates)\b|{_DOES_NOT}|was (?:my|our) (?:first|initial) |[✗✘❌]",
        after=r"(?:is|are) not\b|(?:is|are|was|ca)n['’]t\b|cannot |(?<=[.?!] )no\b(?=[.!]?\s{0,3}(?:\Z|\n))"
        rf"|{_BUT}(?:this|that|it) ?(?:{_IS_WRONG}|{_IS}(?:not what|a (?:mistake|contradiction|trap))\b)"
        rf"|(?:{_BUT}|on (?:reflection|second thought), )(?:the|this|that|my|our) (?:final )?answer ?{_IS_WRONG}"
        rf"|{_BUT}(?:this|that|it) (?:contradicts|fails|{_DOES_NOT})"
        r"|I (?:disagree|was wrong|made an? (?:mistake|error))|I take (?:it|that|this) back|oops\b|scratch that\b"
        r"|actually,? (?:it|that|this|the answer)(?: (?:is|was|(?:should|must) be) |['’]s )"
        r"(?:\S{0,4}\d|\(?[A-J]\b|not\b)|(?:(?:no|wait|actually)\b[,.!:\s]{0,3}){1,3}"
        r"(?:(?:that|this|it)(?:['’]s| is) not|\(?[A-J]\b|[-\d$\\]\S{0,40}?[.!]?\s{0,9}(?:\Z|\n))",
    ),
    "de": Denial(
        before=r"\b(?:(?:falsche|inkorrekte|unrichtige)[rsn]?|nicht|keine?|angenommen,?|wenn|falls)",
        behind=r"(?:ist|sind) (?:\w{2,9} )?(?:falsch|inkorrekt|unmöglich|ausgeschlossen|nicht)\b"
        r"|(?:stimmt|passt|gilt) nicht|scheidet aus",
        after=r"(?:nein|moment|stopp)[,.!: ]{1,3}ich (?:habe mich|lag)\b"
        r"|(?:aber )?(?:das|dies) (?:ist (?:falsch|nicht (?:richtig|korrekt))|stimmt nicht)",
    ),
    "fr": Denial(
        before=r"\b(?:mauvaise|fausse|incorrecte|n['’]est pas|supposons que|si|exclure|éliminer)",
        behind=r"est (?:\w{2,9} )?(?:fausse?|incorrecte?|erronée?|exclue?|impossible|éliminée?)\b"
        r"|n['’]est pas|ne convient pas",
        after=r"non[,.!: ]{1,3}je me (?:suis )?trompée?|je me suis trompée?"
        r"|(?:mais )?(?:c['’]est|ceci est|cela est) (?:faux|incorrect)|ce n['’]est pas (?:correct|juste|vrai)",
    ),
    "es": Denial(
        before=r"\b(?:falsa|incorrecta|no es|no elijo|supongamos que|si|descart(?:ar|amos|o))",
        behind=r"(?:es|está|queda) (?:incorrect|fals|erróne|equivocad|descartad)[ao]\b|está mal\b"
        r"|no (?:es|puede|cumple)\b",
        after=r"(?:no[,.!: ]{1,3})?me (?:he )?equivo(?:qué|cado)"
        r"|(?:pero )?(?:eso|esto) (?:es (?:falso|incorrecto)|no es (?:correcto|cierto))|no es correct[oa]\b",
    ),
    "pt": Denial(
        before=r"\b(?:falsa|incorreta|errada|não é|suponha que|se|descart(?:ar|amos|o))",
        behind=r"(?:é|está|fica) (?:incorret|fals|errad|descartad)[ao]\b|não (?:é|pode|serve)\b",
        after=r"(?:não[,.!: ]{1,3})?(?:eu )?(?:me enganei|errei)"
        r"|(?:mas )?(?:isso|isto) (?:(?:é|está) (?:falso|incorreto|errado)|não (?:é|está) (?:correto|certo))",
    ),
    "it": Denial(
        before=r"\b(?:falsa|errata|sbagliata|non è|se|supponiamo che|escludere|escludiamo)",
        behind=r"è (?:errat|sbagliat|fals|esclus)[ao]\b|non (?:è|può|va)\b",
        after=r"(?:no[,.!: ]{1,3})?mi sono sbagliat[oa]"
        r"|(?:ma )?(?:questo|ciò) (?:è (?:falso|sbagliato|errato)|non è (?:corretto|vero))",
    ),
    "ru": Denial(
        before=r"(?:неверн|неправильн|ошибочн)\w{2,3}|\b(?:не|если|предположим,? что|исключ(?:аем|ить))",
        behind=r"(?:[–—] )?(?:это )?(?:неверн|неправильн|ошибочн|не (?:явля|подход|верн|правильн|может))",
        after=r"(?:нет[,.!: ]{1,3})?я ошиб(?:ся|лась)|(?:но )?это (?:неверно|неправильно|не так|ошибка)",
    ),
    "zh": Denial(
        before=r"不(?:能|应该?|應該?|该|該|可以?|要|会|會|宜|再|是)?|没有?|未|误|誤|错误?的?|錯誤?的?|并非|並非|如果|若|假如|假设|排除",
        behind=r"(?:选?项|選?項|答案)?(?:也|都|均|就|是|为|為|明显|显然|常见|常見){0,2}"
        r"(?:不正确|不正確|错(?!误?(?:选项|答案))|錯(?!誤?(?:選項|答案))|不对|不對|不符|不是(?:正|答|本|对|。|\Z)|不成立|不合"
        r"|不可能|不能?选(?!\s?\(?[A-J])|有误|有誤|排除)|的(?:同学|同學|人|学生|學生|考生)|吗|嗎",
        after=r"(?:但是?|不过|不過)?[这這那此](?:个答案|個答案)?是?(?:错|錯|不对|不對|不正)|不对|不對|错了|錯了|(?:不[,，。]?)?我(?:算|想|看|弄|搞)?[错錯]了",
    ),
    "ja": Denial(
        before="間違った|誤った|正しくない|もし",
        behind="(?:では|じゃ)(?:ない|ありません|なく)|でない|[はが](?:誤り|間違|不正解|正しくな|不適|違)",
        after="(?:でも|しかし)?[、]?(?:これ|それ)は(?:間違|誤り|違)|(?:いや|いいえ)?[、]?(?:計算)?間違えました|違います|間違い(?:です|でした)|間違えました",
    ),
    "ko": Denial(
        before="틀린|잘못된|오|만약",
        behind="번?(?:이|가|은|는)? ?(?:정답이 |답이 )?(?:아니|아닙|아닌|틀렸|틀린|틀립|오답|잘못)",
        after="(?:아니요?[,.]? ?)?(?:제가 )?(?:계산을 )?(?:실수했|틀렸)"
        "|(?:하지만 )?(?:이것은|그것은|이는) (?:틀|잘못)|아닙니다|틀렸습니다",
    ),
    "ar": Denial(before="ليس|ليست", behind="خطأ|خاطئ|غير صحيح|ليس", after="(?:هذا|هذه) (?:خطأ|خاطئ|غير)"),
    "hi": Denial(before="गलत|ग़लत", behind="नहीं|गलत|ग़लत", after="यह (?:गलत|ग़लत|सही नहीं)"),
}
