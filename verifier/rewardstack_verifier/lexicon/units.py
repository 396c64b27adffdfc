"""Table of units with their symbols, names and sizes in other units."""

from __future__ import annotations

from typing import NamedTuple

METRIC, THOUSANDS, LARGE = "GMkhdcmµnp", "TGMkmµnp", "PTGMk"
"""Common sets of unit prefixes: strings of the symbols in `PREFIXES`."""


class Row(NamedTuple):
    """A unit.

    Args:
        symbols: case-sensitive symbols, separated by spaces. Later rows refer to the unit by a symbol.
        names: names in the singular and in lower case, separated by spaces, with `_` for a space in a name.
        size: size in other units, for example `1000 m`. For a base unit, an equals sign and the name of what the unit
            measures, for example `=length`.
        prefixes: symbols of the prefixes that the symbols and names can have.
        zero: zero point of a temperature scale, in kelvins.
    """

    symbols: str
    names: str
    size: str
    prefixes: str = ""
    zero: str = "0"


PREFIXES = {
    "P": ("peta", "10^15"),
    "T": ("tera", "10^12"),
    "G": ("giga", "10^9"),
    "M": ("mega", "10^6"),
    "k": ("kilo", "10^3"),
    "h": ("hecto", "10^2"),
    "d": ("deci", "10^-1"),
    "c": ("centi", "10^-2"),
    "m": ("milli", "10^-3"),
    "µ": ("micro", "10^-6"),
    "n": ("nano", "10^-9"),
    "p": ("pico", "10^-12"),
}
"""Names and sizes of prefixes, by symbol."""

UNITS = (
    Row("m", "meter metre mètre metro метр 米 公尺 メートル metri 미터 متر أمتار मीटर", "=length", METRIC),
    Row("g", "gram gramme gramm gramo grama grammo грамм 克 grammi 그램 غرام جرام ग्राम グラム", "=mass", METRIC + "µ"),
    Row(
        "s",
        "second sec seconde sekunde segundo secondo секунда секунд секунды 秒 secondi 초 ثانية ثوان सेकंड सेकेंड",
        "=time",
        "mµnp",
    ),
    Row("A", "ampere amp ampère amperio", "=current", THOUSANDS),
    Row("K", "kelvin", "=temperature", "m"),
    Row("mol", "mole", "=amount", THOUSANDS),
    Row("cd", "candela", "=intensity"),
    Row("bit", "", "=information", "TGMk"),
    Row("rad", "radian", "=angle", "mµ"),
    # length, area, volume
    Row(
        "km",
        (
            "公里 千米 км километр километра километров kilomètre kilómetro quilômetro quilómetro chilometro"
            " chilometri キロメートル 킬로미터 كيلومتر كم किलोमीटर किमी"
        ),
        "1000 m",
    ),
    Row(
        "cm",
        (
            "厘米 公分 см сантиметр сантиметра сантиметров センチメートル zentimeter centímetro センチ"
            " 센티미터 سنتيمتر سم सेंटीमीटर सेमी"
        ),
        "1/100 m",
    ),
    Row(
        "mm",
        "毫米 мм миллиметр миллиметра миллиметров milímetro ミリメートル 밀리미터 مليمتر ملم मिलीमीटर मिमी",
        "1/1000 m",
    ),
    Row("", "м метра метров", "1 m"),
    Row("Å", "angstrom ångström", "10^-10 m"),
    Row("", "micron", "10^-6 m"),
    Row("in", "inch inche zoll pouce pulgada polegada pollice 英寸", "0.0254 m"),
    Row("ft", "foot feet fuß pied pie 英尺", "0.3048 m"),
    Row("yd", "yard yarda", "0.9144 m"),
    Row("mi", "mile meile milla milha miglio миля миль 英里", "1609.344 m"),
    Row("nmi", "nautical_mile", "1852 m"),
    Row("", "furlong", "201.168 m"),
    Row("", "fathom", "1.8288 m"),
    Row("ly", "light_year light-year lightyear", "9460730472580800 m"),
    Row("AU au", "astronomical_unit", "149597870700 m"),
    Row("pc", "parsec", "30856775814913673 m", "GMk"),
    Row("ha", "hectare hektar hectárea 公顷 гектар ヘクタール", "10000 m^2"),
    Row("", "acre", "4046.8564224 m^2"),
    Row("sqft", "", "1 ft^2"),
    Row("sqm", "", "1 m^2"),
    Row("l L", "liter litre litro литр литра литров 升 リットル litri 리터 لتر लीटर", "1/1000 m^3", METRIC + "µ"),
    Row("", "毫升 мл миллилитр mililitro ミリリットル 밀리리터 ملليلتر مليلتر मिलीलीटर मिली", "1/1000000 m^3"),
    Row("cc", "", "1/1000000 m^3"),
    Row("tsp", "teaspoon", "0.00000492892159375 m^3"),
    Row("tbsp", "tablespoon", "0.00001478676478125 m^3"),
    Row("floz", "fluid_ounce", "0.0000295735295625 m^3"),
    Row("", "cup", "0.0002365882365 m^3"),
    Row("pt", "pint", "0.000473176473 m^3"),
    Row("qt", "quart", "0.000946352946 m^3"),
    Row("gal", "gallon", "0.003785411784 m^3"),
    Row("bbl", "", "0.158987294928 m^3"),
    # mass
    Row(
        "kg",
        (
            "kilo кг килограмм килограмма килограммов 公斤 千克 quilo quilograma quilogramo chilo chilogrammo"
            " chilogrammi キログラム キロ 킬로그램 كيلوغرام كيلوجرام كغ كجم किलोग्राम किग्रा किलो"
        ),
        "1000 g",
    ),
    Row("", "г грамма граммов", "1 g"),
    Row("", "斤", "500 g"),
    Row("", "毫克 мг миллиграмм miligramo miligrama ミリグラム 밀리그램 मिलीग्राम", "1/1000 g"),
    Row("t", "tonne metric_ton tonelada tonnellata тонна тонн тонны 吨 トン 톤 طن टन", "10^6 g", "GMk"),
    Row("", "ton", "907184.74 g"),
    Row("", "ton", "10^6 g"),
    Row("oz", "ounce unze once onza onça oncia", "28.349523125 g"),
    Row("lb lbs", "pound pfund livre libra libbra 磅", "453.59237 g"),
    Row("", "stone", "6350.29318 g"),
    Row("gr", "grain", "0.06479891 g"),
    Row("ct", "carat", "0.2 g"),
    Row("u Da amu", "dalton", "1.66053906892e-24 g", "k"),
    # time
    Row("min", "minute minut minuto minuta минута минут минуты 分钟 分鐘 分 minuti 분 دقيقة دقائق मिनट", "60 s"),
    Row(
        "h hr hrs",
        "hour stunde heure hora ora ч час часа часов 小时 小時 時間 ore 시간 ساعة ساعات घंटा घंटे घंटों घण्टे",
        "3600 s",
    ),
    Row("d", "day tag jour día dia giorno giorni день дня дней 天 日 일 يوم أيام दिन दिनों", "86400 s"),
    Row(
        "wk",
        "week woche semaine semana settimana неделя недели недель 周 星期 週間 주 주일 أسبوع أسابيع सप्ताह हफ्ते हफ़्ते",
        "604800 s",
    ),
    Row("", "fortnight", "1209600 s"),
    Row("", "с", "1 s"),
    Row(
        "mo",
        "month monat mois mes mês mese месяц месяца месяцев 个月 月 개월 달 か月 ヶ月 شهر أشهر महीना महीने माह",
        "=months",
    ),
    Row("yr yrs", "year jahr an année ano año anno год года лет 年 년 سنة سنوات عام أعوام वर्ष साल", "12 mo"),
    Row("", "decade", "120 mo"),
    Row("", "century centurie", "1200 mo"),
    # speed, frequency
    Row("mph", "", "1609.344/3600 m s^-1"),
    Row("", "米每秒", "1 m s^-1"),
    Row("kph kmh kmph", "км/ч 千米每小时 公里每小时", "1000/3600 m s^-1"),
    Row("fps", "", "0.3048 m s^-1"),
    Row("kn kt", "knot", "1852/3600 m s^-1"),
    Row("Hz", "hertz", "1 s^-1", THOUSANDS),
    Row("rpm", "", "1/60 s^-1"),
    Row("bps", "", "1 bit s^-1", "TGMk"),
    # force, pressure, energy, power
    Row("N", "newton ньютон 牛顿 牛頓 ニュートン 뉴턴 نيوتن न्यूटन", "1000 g m s^-2", THOUSANDS),
    Row("Nm", "newton_meter newton_metre newtonmeter", "1 N m", "km"),
    Row("dyn", "dyne", "1/100000 N"),
    Row("lbf", "pound_force", "4.4482216152605 N"),
    Row("kgf", "", "9.80665 N"),
    Row("Pa", "pascal", "1 N m^-2", "GMkhm"),
    Row("bar", "", "100000 Pa", "m"),
    Row("atm", "atmosphere", "101325 Pa"),
    Row("torr Torr", "", "101325/760 Pa"),
    Row("mmHg", "", "133.322387415 Pa"),
    Row("psi", "", "6894.757293168 Pa"),
    Row("J", "joule джоуль джоул 焦耳 ジュール 줄 جول जूल", "1 N m", THOUSANDS),
    Row("cal", "calorie kalorie", "4.184 J", "k"),
    Row("Cal", "", "4184 J"),
    Row("erg", "", "10^-7 J"),
    Row("eV", "electronvolt electron_volt", "1.602176634e-19 J", "TGMkm"),
    Row("BTU Btu", "", "1055.05585262 J"),
    Row("W", "watt vatio ватт 瓦特 瓦 ワット 와트 واط वाट", "1 J s^-1", THOUSANDS),
    Row("hp", "horsepower", "745.69987158227022 W"),
    Row("Wh", "watt_hour watt-hour", "3600 J", "TGMk"),
    # electricity, magnetism, light
    Row("C", "coulomb", "1 A s", "mµnp"),
    Row("Ah", "", "3600 C", "m"),
    Row("V", "volt voltio вольт 伏特 伏 ボルト 볼트 فولت वोल्ट", "1 W A^-1", THOUSANDS),
    Row("Ω", "ohm ohmio", "1 V A^-1", "GMkmµ"),
    Row("S", "siemens", "1 A V^-1", "mµ"),
    Row("F", "farad", "1 C V^-1", "mµnp"),
    Row("Wb", "weber", "1 V s", "m"),
    Row("T", "tesla", "1 Wb m^-2", "mµn"),
    Row("H", "henry", "1 Wb A^-1", "mµn"),
    Row("lm", "lumen", "1 cd"),
    Row("lx", "lux", "1 lm m^-2"),
    # chemistry, radiation
    Row("M", "molar", "1000 mol m^-3", "mµn"),
    Row("Bq", "becquerel", "1 s^-1", THOUSANDS),
    Row("Ci", "curie", "37000000000 Bq", "mµ"),
    Row("Gy", "gray", "1 J kg^-1", "m"),
    Row("Sv", "sievert", "1 J kg^-1", "mµ"),
    # temperature
    Row("°C ºC", "celsius degree_celsius grad_celsius centigrade degree_centigrade", "1 K", zero="273.15"),
    Row("°F ºF", "fahrenheit degree_fahrenheit grad_fahrenheit", "5/9 K", zero="45967/180"),
    # information
    Row("B", "byte octet", "8 bit", LARGE),
    Row("KB", "", "8000 bit"),
    Row("Kb kb", "", "1000 bit"),
    Row("Mb", "", "10^6 bit"),
    Row("Gb", "", "10^9 bit"),
    Row("Mb", "", "8000000 bit"),
    Row("Gb", "", "8000000000 bit"),
    Row("KiB", "kibibyte", "8192 bit"),
    Row("MiB", "mebibyte", "8388608 bit"),
    Row("GiB", "gibibyte", "8589934592 bit"),
    # counts
    Row("", "unit einheit unité unidad unidade unità единица единиц 单位", "=units"),
    Row("", "dozen docena dutzend douzaine", "12 1"),
)
"""The units. A symbol or name that is in several rows is ambiguous."""

POWERS_BEFORE = {
    2: "square sq quadrat 平方 кв квадратных квадратным квадратные квадратный квадратного квадратными 제곱 वर्ग",
    3: "cubic cu kubik 立方 куб кубических кубическим кубические кубический кубического 세제곱 घन",
}
"""Words before a unit that raise it to a power, by power."""
POWERS_AFTER = {
    2: (
        "squared carré carrés carrée cuadrado cuadrados cuadrada quadrado quadrados quadrato quadrati"
        " quadri مربع مربعة مربعا مربعًا"
    ),
    3: "cubed cube cubes cúbico cúbicos cubo cubi cubico cubici cúbicos مكعب مكعبة مكعبا مكعبًا",
}
"""Words after a unit that raise it to a power, by power."""
ENDINGS = "s n e es en er i а ов ам ами ах у ом е ы и ей ям я ا ات ين ان ًا"
"""Plural endings that a name may have."""
NOT_PLURALS = "france"
"""Words that only look like the plural of a unit."""
PER = "per pro par por al 每 в an a"
"""Words for a division between two units, such as "per"."""
LETTERS = "m g s h l L N J K V W A C F"
"""One-letter symbols that are read as a unit if a space is before them, even if they are not in upright type.

All other one-letter symbols are units only in upright type.
"""

MARKED = (
    "sq cu mm cm dm km in ft yd mi kg oz lb lbs ml mL dl cl hr hrs min hp Hz kHz MHz GHz Pa kPa eV keV kJ kW kWh kN kV"
    " GB MB kB mol mph kmh rad deg bit cal gal atm m/s m/s^2 m/s^{2} ft/s g/mol g/L N/m J/K V/m"
)
"""Symbols that are a unit although they are not in upright type, because nobody means a product of these letters.

The answer may leave them out. Other symbols, such as `mg`, `m` and `nm`, may be a product.
"""

IN_PROSE = (
    "millimeters? millimetres? centimeters? centimetres? decimeters? decimetres? meters? metres? kilometers?"
    " kilometres? inch inche?s foot feet yards? miles? milligrams? grams? kilograms? ounces? pounds? milliliters?"
    " millilitres? liters? litres? cups? pints? quarts? gallons? milliseconds? secs? seconds? mins? minutes? hrs?"
    " hours? days? weeks? months? years? dozens? cents? dollars? bucks? usd euros? eur rupees? inr gbp yen jpy"
    " joules? kilojoules? electronvolts? calories? newtons? kilonewtons? watts? kilowatts? pascals? volts? hertz"
    " celsius fahrenheit kelvin cm mm km kg mg ml mL mph kph ft lbs? oz"
)
"""Patterns of the units that are read behind a number or formula in prose, in the singular and plural."""
