"""Number words by language: a row of `LANGUAGES` for each language, and the characters of Chinese numerals."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """The number words of a language, in lower case and separated by spaces; `|` separates words for one number.

    Args:
        ones: words for 0, 1, 2 and so on.
        tens: words for 20, 30, 40 and so on.
        large: words for powers of ten; they multiply the number before them, or stand alone.
        powers: exponents of the powers of ten in `large`.
        parts: words for the denominators 2, 3, 4 and so on.
        ordinals: words for first, second, third and so on.
        joining: words between the parts of a number, such as "and".
        negative: words for the minus sign.
        below: words between ones and the tens that follow them, as "und" in "fünfundzwanzig".
        hundreds: words for 200, 300, 400 and so on, if they are not composed of other words.
        articles: articles that mean one before a word of `large` or `parts`: "a million", "a third".
        fixed: other number words, each followed by its value.
        teens: words that add ten to the word of `ones` before them.
        half_more: words that add a half to the number after them.
        and_a_half: ending of a word that adds a half, as in German "zweieinhalb".
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
    fixed: str = ""
    teens: str = ""
    half_more: str = ""
    and_a_half: str = ""


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
        parts="halb|halbe|halbes|hälfte drittel viertel fünftel sechstel siebtel achtel neuntel zehntel elftel zwölftel"
        " dreizehntel vierzehntel fünfzehntel sechzehntel",
        joining="und",
        negative="minus",
        below="und",
        fixed="anderthalb|eineinhalb 3/2",
        and_a_half="einhalb",
    ),
    "fr": Row(
        "zéro un|une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept"
        " dix-huit dix-neuf",
        "vingt|vingts trente quarante cinquante soixante septante huitante|octante nonante",
        "cent|cents mille million|millions milliard|milliards billion|billions",
        parts="demi|demie|moitié tiers quart cinquième sixième septième huitième neuvième dixième onzième douzième",
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
        parts="medio|media|mitad tercio cuarto|cuarta quinto|quinta sexto|sexta séptimo octavo noveno décimo onceavo"
        " doceavo",
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
        " novecentos|novecentas",
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
        parts="mezzo|mezza|metà terzo|terzi quarto|quarti quinto|quinti sesto|sesti settimo|settimi ottavo|ottavi"
        " nono|noni decimo|decimi",
        joining="e",
        negative="meno",
    ),
    "ru": Row(
        "ноль|нуль|нулю|нуля один|одна|одно|одному|одной|одного|одну|единица|единице|единицы|единицу|единицей"
        " два|две|двум|двух три|трём|трем|трёх|трех"
        " четыре|четырём|четырем|четырёх|четырех пять|пяти шесть|шести семь|семи восемь|восьми девять|девяти"
        " десять|десяти одиннадцать|одиннадцати двенадцать|двенадцати тринадцать|тринадцати четырнадцать|четырнадцати"
        " пятнадцать|пятнадцати шестнадцать|шестнадцати семнадцать|семнадцати восемнадцать|восемнадцати"
        " девятнадцать|девятнадцати",
        "двадцать|двадцати тридцать|тридцати сорок|сорока пятьдесят|пятидесяти шестьдесят|шестидесяти"
        " семьдесят|семидесяти восемьдесят|восьмидесяти девяносто|девяноста",
        "сто|ста тысяча|тысячи|тысяч|тысяче|тысячам миллион|миллиона|миллионов|миллиону|миллионам"
        " миллиард|миллиарда|миллиардов|миллиардам",
        powers=(2, 3, 6, 9),
        hundreds="двести|двухсот|двумстам триста|трёхсот|трехсот|трёмстам|тремстам четыреста|четырёхсот|четыремстам"
        "|четырёмстам пятьсот|пятисот|пятистам шестьсот|шестисот|шестистам семьсот|семисот|семистам"
        " восемьсот|восьмисот|восьмистам девятьсот|девятисот|девятистам",
        parts="половина|половине|половиной|половины|половину треть|трети|третьей|третьих|третям"
        " четверть|четверти|четвёртая|четвертая|четвёртых|четвертых|четвертям|четвертью|четвертой|четвёртой"
        " пятая|пятых|пятой|пятым шестая|шестых|шестой|шестым седьмая|седьмых|седьмой|седьмым"
        " восьмая|восьмых|восьмой|восьмым девятая|девятых|девятой|девятым десятая|десятых|десятой|десятым"
        " одиннадцатых|одиннадцатая двенадцатых|двенадцатая|двенадцатой",
        joining="с целых целая",
        negative="минус",
        fixed="полтора|полторы|полутора 3/2",
    ),
    "hi": Row(
        (
            "शून्य एक दो तीन चार पाँच|पांच छह|छः|छे सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह|पन्द्रह सोलह सत्रह"
            " अठारह|अट्ठारह उन्नीस बीस इक्कीस बाईस|बाइस तेईस|तेइस चौबीस पच्चीस छब्बीस सत्ताईस|सत्ताइस अट्ठाईस|अट्ठाइस"
            " उनतीस|उन्तीस तीस इकतीस|इकत्तीस बत्तीस तैंतीस|तेंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस"
            " उनतालीस|उनचालीस चालीस इकतालीस बयालीस तैंतालीस|तेंतालीस चौवालीस|चवालीस पैंतालीस छियालीस सैंतालीस"
            " अड़तालीस उनचास पचास इक्यावन बावन तिरपन|तिरेपन चौवन|चौअन पचपन छप्पन सत्तावन अट्ठावन|अठावन उनसठ साठ"
            " इकसठ बासठ तिरसठ|तिरेसठ चौंसठ|चौसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर"
            " पचहत्तर छिहत्तर सतहत्तर अठहत्तर उन्यासी|उनासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी"
            " अट्ठासी|अठासी नवासी नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे|पंचानवे छियानवे सत्तानवे"
            " अट्ठानवे|अठानवे निन्यानवे|निन्यानबे"
        ),
        "",
        "सौ हज़ार|हजार लाख करोड़",
        powers=(2, 3, 5, 7),
        parts="आधा|आधी|आधे तिहाई चौथाई",
        negative="ऋणात्मक माइनस ऋण",
        fixed="डेढ़ 3/2 ढाई 5/2",
        half_more="साढ़े",
    ),
    "ar": Row(
        (
            "صفر|صفرا واحد|واحدة|واحدا|أحد|إحدى اثنان|اثنين|اثنتان|اثنتين|اثنا|اثني|اثنتا|اثنتي ثلاثة|ثلاث"
            " أربعة|أربع خمسة|خمس ستة|ست سبعة|سبع ثمانية|ثماني|ثمان تسعة|تسع عشرة|عشر"
        ),
        "عشرون|عشرين ثلاثون|ثلاثين أربعون|أربعين خمسون|خمسين ستون|ستين سبعون|سبعين ثمانون|ثمانين تسعون|تسعين",
        "مائة|مئة|مئه ألف|آلاف|ألفا مليون|ملايين",
        powers=(2, 3, 6),
        hundreds=(
            "مائتان|مائتين|مئتان|مئتين ثلاثمائة|ثلاثمئة أربعمائة|أربعمئة خمسمائة|خمسمئة ستمائة|ستمئة"
            " سبعمائة|سبعمئة ثمانمائة|ثمانمئة|ثمانيمائة تسعمائة|تسعمئة"
        ),
        parts="نصف|النصف ثلث|أثلاث ربع|أرباع|الأرباع خمس|أخماس سدس|أسداس سبع|أسباع ثمن|أثمان تسع|أتساع أعشار",
        joining="و",
        negative="سالب ناقص",
        below="و",
        fixed="ثلثان|ثلثين|ثلثا|ثلثي|الثلثين 2/3 ألفان|ألفين 2000",
        teens="عشر عشرة",
    ),
}

MONEY = frozenset(("cent", "cents"))
"""Number words that mean money after digits: French "cent" is 100, but "5 cents" is an amount."""
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
"""Characters that can follow a Chinese or Japanese numeral without a space, such as counters and units."""
