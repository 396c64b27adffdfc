"""Words and phrases in several languages, grouped by their meaning or by their effect on an answer."""

from __future__ import annotations

SAME = {
    "yes": "yes|yeah|ja|oui|sí|sim|sì|да|是|是的|肯定的|はい|예|네|نعم|हाँ|हां",
    "no": "no|nope|nein|non|não|нет|否|不是|否定的|いいえ|아니요|아니오|لا|नहीं",
    "true": (
        "true|wahr|richtig|vrai|vraie|verdadero|verdadera|verdadeiro|verdadeira|vero|vera|истина|истинно"
        "|верно|真|正确|正確|正しい|참|صحيح|صحيحة|सत्य|सही"
    ),
    "false": "false|falsch|faux|fausse|falso|falsa|ложь|ложно|неверно|假|错误|錯誤|偽|거짓|خطأ|خاطئة|असत्य|गलत|ग़लत",
    "no solution": "no solution|no root|no such integer|no such number|no solution exist|solution do not exist"
    "|solution does not exist|none exist|keine lösung|keine lösungen|pas de solution|il n'y a pas de solution"
    "|aucune solution|sin solución"
    "|no hay solución|no tiene solución|sem solução|não há solução|nessuna soluzione|нет решений|нет решения"
    "|не имеет решений|无解|無解|没有解|解なし|해가 없다|لا يوجد حل|कोई हल नहीं",
    "no real solution": "no real solution|no real root|no solution in the real|keine reellen lösungen"
    "|keine reelle lösung|pas de solution réelle|aucune solution réelle|sin soluciones reales|sem solução real"
    "|нет действительных решений|не имеет действительных решений"
    "|无实数解|无实数根|无实根|没有实数解",
    "does not exist": "does not exist|do not exist|doesn't exist|dne|existiert nicht|n'existe pas|no existe|não existe"
    "|не существует|不存在|存在しない",
    "infinitely many": "infinitely many|infinite|infinite solution|infinitely many solution|infinite number of solution"
    "|unendlich viele|unendlich viele lösungen|une infinité de solutions|une infinité|infinitas soluciones"
    "|infinitas soluções|infinite soluzioni|бесконечно много|бесконечно много решений|无穷多|无穷多个|无数个",
    "undefined": "undefined|not defined|nicht definiert|undefiniert|non défini|indéfini|indefinido|no definido"
    "|indefinito|не определено|未定义|无定义|無定義",
    "impossible": "impossible|not possible|unmöglich|imposible|impossível|impossibile|невозможно|不可能",
    "cannot be determined": "cannot be determined|can't be determined|can not be determined|not enough information"
    "|insufficient information|nicht bestimmbar|无法确定|不能确定",
    "even": "even|gerade|pari|чётная|чётное|четное|偶数|偶函数|偶",
    "odd": "odd|ungerade|impair|impar|ímpar|dispari|нечётная|нечётное|нечетное|奇数|奇函数|奇",
    "all real": "all real|all real number|every real number|alle reellen zahlen|tous les réels|todos los números reales"
    "|все действительные числа|全体实数|任意实数",
    "empty set": "empty set|empty|leere menge|ensemble vide|conjunto vacío|conjunto vazio|пустое множество|空集",
    "all integer": "all integer|every integer|alle ganzen zahlen|所有整数|全体整数",
    "all positive integer": "all positive integer|positive integer|every positive integer|所有正整数|全体正整数",
    "red": "red|rouge|rojo|vermelho|rosso|красный|红|红色|赤",
    "blue": "blue|blau|bleu|azul|blu|синий|蓝|蓝色|青",
    "green": "green|grün|vert|verde|зелёный|зеленый|绿|绿色|緑",
    "yellow": "yellow|gelb|jaune|amarillo|amarelo|giallo|жёлтый|желтый|黄|黄色",
    "black": "black|schwarz|noir|negro|preto|чёрный|черный|黑|黑色|黒",
    "white": "white|weiß|weiss|blanc|blanco|branco|bianco|белый|白|白色",
    "gray": "gray|grey",
    "people": "people|person|persons",
}
"""Normal forms and their synonyms in lower case, separated by `|`; English synonyms are singular, without articles."""

ARTICLES = "the a an der die das la le les el los las il lo gli"
"""Articles, which are ignored in names."""
SILENT = "there is|there are|it is|es gibt|il y a|hay|on"
"""Phrases that do not change the meaning of a statement."""

PERCENT = (
    "percent|percentage|percentage point|percentage points|per cent|pct|prozent|prozentpunkte|pour cent|por ciento"
    "|por cento|per cento|процентов|процента|процентам|процент"
    "|퍼센트|パーセント|بالمئة|في المئة|بالمائة|في المائة|प्रतिशत"
)
"""Words for the percent sign."""
ROUGHLY = (
    "all|for all|about|approximately|approx|around|roughly|exactly|ungefähr|etwa|rund|circa|ca|genau|environ"
    "|à peu près|exactement|aproximadamente|cerca de|unos|exactamente|примерно|около|ровно|约|約"
    "|大约|大約|约为|大约是|正好|共"
)
"""Words before a value that do not change it."""
ANSWER = (
    "the answer is|the final answer is|final answer :|answer :|ans :|answer =|die antwort ist|antwort :|la réponse est"
    "|réponse :|la respuesta es|respuesta :|a resposta é|resposta :|la risposta è|risposta :|ответ :|答案 :|答案是"
    "|答案为|答え :|答えは"
)
"""Phrases that only introduce an answer."""
LABELS = "point points punkt point(s) punto ponto точка 点 點 점"
"""Words before a letter or a point that do not change it."""
NO_POINTS = "B C F G N R U"
"""Letters before a pair that name a distribution, a number or a function rather than a point: `N(0, 1)`."""
ROUGHLY_BEHIND = (
    "approximately|approx|exactly|in total|total|altogether|en total|au total|insgesamt|no total|in totale|всего"
    "|ungefähr|genau|environ|左右"
)
"""Words after a value that do not change it."""

CHANGING = (
    "or and is are was were be not no none never if when where unless at least most than about between to from wrong"
    " incorrect false maybe perhaps possibly probably remainder R percent am pm AM PM noon midnight repeating recurring"
    " hundred thousand million billion trillion dozen half third quarter rad mod modulo base st nd rd th of the by but"
    " otherwise alternatively rejected extraneous excluded discarded invalid"
    " inadmissible undefined ruled fails fail failed negative below doubled tripled halved bound bounds permille"
    " promille ppm ppb gross squared cubed plus minus times factorial would could should might guess mod only"
    " oder und ist nicht kein wenn falsch rest mal ou et est pas si faux o y es no sino или и не если либо"
    " 或 和 不 不是 或者"
)
"""Words that change the value before them, or that begin something other than a unit or a noun."""
DENYING = (
    "or not no never cannot can't neither nor wrong incorrect false maybe perhaps"
    " oder nicht kein falsch ou pas faux no sino o или не 不 或"
)
"""Words that deny the text next to them.

Text in parentheses, or before "is", is not removed if it contains one of these words.
"""
RETRACTING = (
    "opposite alternatively rejected extraneous excluded discarded invalid inadmissible ruled fails fail failed"
    " negative below doubled tripled halved permille promille ppm ppb gross"
)
"""Words that deny or change the text before them, if they are in parentheses.

Unlike the words of `DENYING`, they can be part of a name before "is".
"""
NEGATING = "no not never cannot can't neither nor or nicht kein oder pas ou o не или 不 或"
"""Words of `DENYING` that the reason after "yes" or "true" may contain, but not begin with: "Yes, as 7 is not even"."""
UNSPECIFIC = (
    "answer final result value solution total sum amount number of antwort ergebnis wert réponse résultat respuesta"
    " resultado resposta risposta risultato ответ результат 答案 结果 答え"
)
"""General names of a value, such as "answer" and "total". They do not say which value it is, as "area" does."""
IS = "is are equals ist sind beträgt est sont vaut es son é são è sono 是 为 等于 は"
"""Words between a name and its value."""
ASKING = "what which who how why if whether it this that was welche wie quel que какой"
"""If the text before "is" contains one of these words, it is not the name of a value: "what is", "it is"."""
SPOKEN = {
    "the square root of": "\\sqrt",
    "square root of": "\\sqrt",
    "the cube root of": "\\sqrt[3]",
    "cube root of": "\\sqrt[3]",
    "real numbers except": "\\mathbb{R} \\setminus",
    "real numbers other than": "\\mathbb{R} \\setminus",
    "squared": "^2",
    "cubed": "^3",
    "to the power of": "^",
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "factorial": "!",
}
"""Phrases for operations, and the notation of each operation."""
COMPARING = "more fewer less greater mehr weniger plus moins más menos"
"""Words for a comparison. In a noun after a value, "than" may follow one of them: "5 more apples than Tom"."""
WITHIN = "of the at from and"
"""Words of `CHANGING` that a noun phrase may contain between two words; "of" may also begin it."""
SHORT = "a an in my he we it s of at de la le du un el di da do"
"""Words of one or two letters that a noun phrase may contain."""
PERMUTATIONS = (
    "and permutations|and its permutations|and all permutations|and all its permutations|and their permutations"
    "|and all their permutations|and permutations thereof|and all permutations thereof|or any permutation"
)
"""Words behind a point that add all orders of its coordinates."""
CONDITIONS = "if for when where falls für wenn si pour cuando se quando если при 若 当 当且仅当"
"""Words before the condition of a case in a function defined by cases."""
OTHERWISE = "otherwise else sonst andernfalls sinon autrement caso contrario de lo altrimenti иначе 其他 否则"
"""Words for the condition of the last case, which covers all remaining values."""
REMAINDER = "R r remainder Rest rest reste resto остаток 余"
"""Words between a quotient and its remainder."""
