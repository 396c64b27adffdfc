"""Numbers in words, by language: data. A language is a row of `LANGUAGES`."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """How a language says numbers, in small letters, between spaces; several words for one stand with `|` between.

    Args:
        ones: from zero on.
        tens: from twenty on, each ten.
        large: of the powers of ten in `powers`; they multiply what stands before them, which may be left out.
        powers: exponents of `large`.
        parts: of a whole, from a half on: names of the denominators.
        ordinals: from the first on.
        joining: words between the parts of a number.
        negative: words for the minus sign.
        below: words behind which ones stand before the tens, as in "fünfundzwanzig".
        hundreds: from two hundred on, where they are words of their own.
        articles: words for one where a large number or a part follows.
    """

    ones: str
    tens: str
    large: str
    powers: tuple[int, ...] = (2, 3, 6, 9, 12)
    parts: str = ""
    ordinals: str = ""
    joining: str = ""
    negative: str = ""
    below: str = ""
    hundreds: str = ""
    articles: str = ""


LANGUAGES = {
    "en": Row(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "hundred thousand million billion trillion lakh crore",
        powers=(2, 3, 6, 9, 12, 5, 7),
        parts="half|halves|halve third fourth|quarter fifth sixth seventh eighth ninth tenth eleventh twelfth",
        ordinals="first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
        " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        joining="and",
        negative="negative minus",
        articles="a an",
    ),
    "de": Row(
        "null eins|ein|eine|einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn"
        " sechzehn siebzehn achtzehn neunzehn",
        "zwanzig dreißig|dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "hundert tausend million|millionen milliarde|milliarden billion|billionen",
        parts="halb|halbe|halbes|hälfte drittel viertel fünftel sechstel siebtel achtel neuntel zehntel",
        joining="und",
        negative="minus",
        below="und",
    ),
    "fr": Row(
        "zéro un|une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept"
        " dix-huit dix-neuf",
        "vingt|vingts trente quarante cinquante soixante septante huitante|octante nonante",
        "cent|cents mille million|millions milliard|milliards billion|billions",
        parts="demi|demie|moitié tiers quart cinquième sixième septième huitième neuvième dixième",
        joining="et",
        negative="moins",
    ),
    "es": Row(
        "cero uno|un|una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
        " dieciséis|dieciseis diecisiete dieciocho diecinueve veinte veintiuno|veintiún veintidós|veintidos"
        " veintitrés|veintitres veinticuatro veinticinco veintiséis|veintiseis veintisiete veintiocho veintinueve",
        "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        "cien|ciento mil millón|millones",
        powers=(2, 3, 6),
        parts="medio|media|mitad tercio cuarto|cuarta quinto|quinta sexto séptimo octavo noveno décimo",
        joining="y",
        negative="menos",
        hundreds="doscientos|doscientas trescientos|trescientas cuatrocientos|cuatrocientas quinientos|quinientas"
        " seiscientos|seiscientas setecientos|setecientas ochocientos|ochocientas novecientos|novecientas",
    ),
    "pt": Row(
        "zero um|uma dois|duas três|tres quatro cinco seis sete oito nove dez onze doze treze catorze|quatorze quinze"
        " dezesseis|dezasseis dezessete|dezassete dezoito dezenove|dezanove",
        "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
        "cem|cento mil milhão|milhões bilhão|bilhões",
        powers=(2, 3, 6, 9),
        hundreds="duzentos|duzentas trezentos|trezentas quatrocentos quinhentos seiscentos setecentos oitocentos"
        " novecentos",
        parts="meio|meia|metade terço quarto quinto sexto sétimo oitavo nono décimo",
        joining="e",
        negative="menos",
    ),
    "it": Row(
        "zero uno|un|una due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici"
        " sedici diciassette diciotto diciannove",
        "venti|vent trenta|trent quaranta|quarant cinquanta|cinquant sessanta|sessant settanta|settant ottanta|ottant"
        " novanta|novant",
        "cento mille|mila milione|milioni miliardo|miliardi",
        powers=(2, 3, 6, 9),
        parts="mezzo|mezza|metà terzo|terzi quarto|quarti quinto|quinti sesto|sesti settimo|settimi ottavo|ottavi",
        joining="e",
        negative="meno",
    ),
    "ru": Row(
        "ноль|нуль один|одна|одно два|две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать"
        " тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
        "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
        "сто тысяча|тысячи|тысяч миллион|миллиона|миллионов миллиард|миллиарда|миллиардов",
        powers=(2, 3, 6, 9),
        hundreds="двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
        parts="половина треть|трети четверть|четверти",
        negative="минус",
    ),
    "hi": Row(
        "शून्य एक दो तीन चार पाँच|पांच छह|छः सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस",
        "बीस तीस चालीस पचास साठ सत्तर अस्सी नब्बे",
        "सौ हज़ार|हजार लाख करोड़",
        powers=(2, 3, 5, 7),
        parts="आधा|आधी",
    ),
    "ar": Row(
        "صفر واحد|واحدة اثنان|اثنين|اثنتان ثلاثة|ثلاث أربعة|أربع خمسة|خمس ستة|ست سبعة|سبع ثمانية|ثماني تسعة|تسع"
        " عشرة|عشر",
        "عشرون|عشرين ثلاثون|ثلاثين أربعون|أربعين خمسون|خمسين ستون|ستين سبعون|سبعين ثمانون|ثمانين تسعون|تسعين",
        "مائة|مئة ألف مليون",
        powers=(2, 3, 6),
        parts="نصف ثلث ربع خمس",
    ),
}

MONEY = frozenset(("cent", "cents"))
"""Words for a number that are money behind digits."""
CHINESE_DIGITS = {
    **{digit: value for value, digit in enumerate("零一二三四五六七八九")},
    **dict(zip("两兩壹贰叁肆伍陆柒捌玖", (2, 2, *range(1, 10)), strict=True)),
    "\u3007": 0,
}
CHINESE_TENS = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000}
CHINESE_LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
CHINESE_COUNTERS = (
    "个個只隻本人名位条張张件辆輛颗粒块次种種天年月日岁倍元米厘毫千公分秒小角度斤升套道对排组班箱袋瓶枚棵朵头匹つ"
)
"""What Chinese and Japanese numerals are made of, and what may stand behind one in a word."""
