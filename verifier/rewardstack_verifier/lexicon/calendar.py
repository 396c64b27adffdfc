"""Data: words for months, weekdays, halves of the day and times of day in several languages."""

from __future__ import annotations

MONTHS = {
    "en": "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sept|sep october|oct"
    " november|nov december|dec",
    "de": "januar|jänner februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février|fevrier mars avril mai juin juillet août|aout septembre octobre novembre décembre|decembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "ru": "января|январь февраля|февраль марта|март апреля|апрель мая|май июня|июнь июля|июль августа|август"
    " сентября|сентябрь октября|октябрь ноября|ноябрь декабря|декабрь",
    "zh": "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",
    "ar": "يناير فبراير مارس أبريل|ابريل مايو يونيو|يونيه يوليو|يوليه أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    "hi": "जनवरी फ़रवरी|फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर|सितम्बर अक्टूबर|अक्तूबर नवंबर|नवम्बर दिसंबर|दिसम्बर",
}
"""Names of the months from January on, in lower case; `|` separates several names of one month."""

WEEKDAYS = {
    "en": "monday|mon tuesday|tue|tues wednesday|wed thursday|thu|thurs friday|fri saturday|sat sunday|sun",
    "de": "montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles|miercoles jueves viernes sábado|sabado domingo",
    "pt": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "ru": "понедельник вторник среда|среду четверг пятница|пятницу суббота|субботу воскресенье",
    "zh": "星期一|周一 星期二|周二 星期三|周三 星期四|周四 星期五|周五 星期六|周六 星期日|星期天|周日",
    "ja": "月曜日|月曜 火曜日|火曜 水曜日|水曜 木曜日|木曜 金曜日|金曜 土曜日|土曜 日曜日|日曜",
    "ko": "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    "ar": "الاثنين|الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد",
    "hi": "सोमवार मंगलवार बुधवार गुरुवार|बृहस्पतिवार शुक्रवार शनिवार रविवार",
}
"""Names of the weekdays from Monday on, in the format of `MONTHS`."""

MORNING = "am|a.m.|a.m|a. m.|in the morning|morgens|uhr morgens|vormittags|du matin|de la mañana|上午|早上|午前|утра"
AFTERNOON = (
    "pm|p.m.|p.m|p. m.|in the afternoon|in the evening|at night|nachmittags|uhr nachmittags|abends|uhr abends"
    "|de l'après-midi|du soir|de la tarde|de la noche|下午|晚上|午後|дня|вечера"
)
"""Words for the second half of the day, written before or after the hour; `MORNING` has those for the first half."""

NAMED_HOURS = {
    "noon": "p",
    "12 noon": "p",
    "midday": "p",
    "mittag": "p",
    "midi": "p",
    "mediodía": "p",
    "正午": "p",
    "полдень": "p",
    "midnight": "a",
    "12 midnight": "a",
    "mitternacht": "a",
    "minuit": "a",
    "medianoche": "a",
    "полночь": "a",
}
"""Names of twelve o'clock; `p` is noon, `a` is midnight."""

QUARTERS = {"half past": 30, "quarter past": 15, "a quarter past": 15, "quarter to": -15, "a quarter to": -15}
"""Phrases before an hour, and the minutes that they add."""
HOUR = "o'clock|o' clock|oclock|uhr|heures|heure|h|hrs|点|點|时|時|点钟|часов|часа"
"""Words after a full hour, or between hours and minutes."""
DURATION = "h hrs heure heures часов часа 時 时"
"""Words of `HOUR` that may also count the hours of a duration."""
JOINING = "of de del den der le the on am um el 号"
"""Words that join the parts of a date and have no meaning in it."""
