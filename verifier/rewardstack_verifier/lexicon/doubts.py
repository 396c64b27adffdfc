"""Words by which a sentence denies, doubts or joins the values in it, and announces an answer: a language is a row."""

from __future__ import annotations

from typing import NamedTuple


class Language(NamedTuple):
    """Phrases of a language, separated by `|`.

    Args:
        denials: of a clause whose value is not the answer; before it, or behind it.
        hedges: anywhere in a sentence that leaves its value open.
        alternatives: between two values of which one may be the answer.
        joints: between two values that are both the answer.
        options: names of an option, behind which its letter stands.
        answers: names of an answer, behind which it stands; with `are` and `denials` looked for in any language's text.
        are: verbs between such a name and the answer, where no colon does.
        wrong: of a sentence that takes back the value in it, wherever they stand.
        solutions: what there is none of where a sentence without values denies.
        existing: words right before a value that there is: "there are 12 ways", "we need 9 boxes".
        connectives: before a statement, or between commas within it.
        words: by which a sentence is known to be of the language, where its letters do not tell; those that others have
            too count for each, and so do denials, hedges and answers.
        letters: that others of its letters' languages hardly have.
        given: words right before a value that only says of what the sentence speaks: "the 4 guests", "at 3 tables".
        conditions: with which a clause begins whose values are conditions, or reasons.
        others: words of "there are no other ones", which denies nothing.
        given_behind: words right behind such a value and its noun.
        bounds: words right beside a value that only bounds what is asked for: "less than 7".
        about: words right before what a value is roughly: "1/6, that is about 16.7 %".
        scripts: ranges of letters that are of the language alone.
        decimal_comma: whether a comma stands before decimals, so that points are between thousands.
        spaced: whether words have spaces around them.
        denied_behind: whether a denial stands behind what it denies.
    """

    denials: str = ""
    hedges: str = ""
    alternatives: str = ""
    joints: str = ""
    options: str = ""
    answers: str = ""
    are: str = ""
    wrong: str = ""
    solutions: str = ""
    existing: str = ""
    connectives: str = ""
    words: str = ""
    letters: str = ""
    given: str = ""
    conditions: str = ""
    others: str = ""
    given_behind: str = ""
    bounds: str = ""
    about: str = ""
    scripts: str = ""
    decimal_comma: bool = False
    spaced: bool = True
    denied_behind: bool = False


LANGUAGES = {
    "en": Language(
        hedges=(
            "i doubt|i guess|my guess is|perhaps|possibly|probably|presumably|it may be that|give up|is one of|could be"
            "|might be|may be|might well be|may well be|could well be|could also be|might also be|not sure|not certain"
        ),
        alternatives="or",
        joints="and",
        words=(
            "the|of|is|are|and|to|no|not|i|should|let|can|will|then|our|check|whether|were|its|we|therefore|thus|hence|total|answer|there|with|that|it|this|which|so|must|for"
            "|has|have|by|as|be|she|he|they|get|gives|each|from|if|at|per"
        ),
    ),
    "de": Language(
        denials=(
            "nicht|kein|keine|keinen|keiner|keineswegs|weder|niemals|falsch|unmöglich|widerlegt|scheidet aus"
            "|ausgeschlossen"
        ),
        hedges=(
            "vielleicht|möglicherweise|vermutlich|eventuell|könnte|könnten|dürfte|nicht sicher|unsicher|womöglich"
            "|ich rate|wahrscheinlich|ich glaube|ich vermute|schätze ich|scheint|tippen|tippe"
        ),
        alternatives="oder|beziehungsweise|bzw.|entweder",
        joints="und|sowie|als auch",
        options="Antwort|Antwortmöglichkeit|Option|Lösung|Auswahl",
        answers="Antwort|Lösung|Lösungen|Ergebnis|Endergebnis",
        are="ist|sind|lautet|lauten|beträgt",
        wrong="falsch|stimmt nicht|verworfen|widerrufe",
        solutions="Lösung|Lösungen|Nullstelle|Nullstellen",
        connectives="also|somit|daher|folglich|demnach|damit|mithin|schließlich|insgesamt|deshalb|demzufolge",
        words=(
            "der|die|das|den|dem|des|an|ist|sind|und|wir|somit|daher|folglich|demnach|damit|beträgt|lautet|insgesamt"
            "|nicht|ein|eine|einen|er|sie|es|für|mit|auf|kein|keine|hat|haben|werden|wird|kann|von|im|zu|als|aus"
            "|ergibt|gibt|Antwort|Lösung"
        ),
        given=(
            "die|der|den|dem|das|diese|diesen|aller|alle|jede|jeder|jedem|pro|je|in|an|auf|aus|nach|vor|mit|bei"
            "|seit|für|zwischen|diesen|seinen|ihren|ihre|seine|durch|um|unter|innerhalb von|alle|allen|über"
        ),
        conditions="wenn|falls|da|weil|sofern|denn|obwohl|für|um|wobei",
        others="weitere|weiteren|andere|anderen|mehr",
        letters="ßäöü",
        existing=(
            "es gibt|gibt es|braucht man|man braucht|braucht|benötigt|bekommt|existieren|existiert|erhält|hat"
            "|haben|sind|sind es|kostet|dauert"
        ),
        decimal_comma=True,
        bounds="kleiner als|größer als|weniger als|mehr als",
        about="etwa|ungefähr|circa|ca.|rund|näherungsweise",
    ),
    "fr": Language(
        denials="pas|non|aucun|aucune|jamais|ni|faux|fausse|incorrect|incorrecte|impossible|exclu",
        hedges=(
            "peut-être|possiblement|pourrait|pourraient|il se peut|pas sûr|pas sûre|pas certain|pas certaine"
            "|probablement|sans doute|je crois|je pense|je suppose|semble|je dirais|j'hésite|je ne sais pas"
        ),
        alternatives="ou|ou bien|soit",
        joints="et|ainsi que",
        options="réponse|option|proposition|choix",
        answers="réponse|résultat|solution|solutions",
        are="est|sont|vaut",
        wrong="faux|fausse|incorrect|incorrecte|ne saurait|erroné|erronée",
        solutions="solution|solutions|racine|racines",
        connectives="donc|ainsi|par conséquent|finalement|en conclusion|au total|alors|dès lors",
        words=(
            "le|la|les|des|du|un|une|est|sont|et|nous|donc|ainsi|vaut|il|elle|on|que|qui|pour|dans|avec|au|aux"
            "|pas|réponse|solution|par|cette|ce|obtient|faut|reste|fait|plus|sur"
        ),
        given=(
            "les|des|aux|ces|ses|leurs|nos|vos|chacun des|dans|en|pendant|avec|pour|par|chaque|parmi|après|avant"
            "|sur|entre|quand|lorsque|la|l'|le|tous les|toutes les"
        ),
        conditions="si|quand|lorsque|car|puisque|comme|pour|parce|sachant",
        others="autre|autres|plus",
        letters="œèùîûë",
        existing="il y a|il faut|on a|il existe|on obtient|il reste|a|ont|coûte|dure|faut-il|reste|range|peut former",
        decimal_comma=True,
        bounds="inférieur à|inférieure à|supérieur à|supérieure à|moins de|plus de|plus petit que|plus grand que",
        about="environ|approximativement|à peu près",
    ),
    "es": Language(
        denials=(
            "no|ningún|ninguno|ninguna|jamás|nunca|tampoco|ni|falso|falsa|incorrecto|incorrecta|imposible"
            "|descartado|descartada|descarta"
        ),
        hedges=(
            "quizás|quizá|tal vez|puede que|podría|podrían|a lo mejor|no estoy seguro|no estoy segura"
            "|probablemente|creo que|supongo|parece que|posiblemente|no sé"
        ),
        alternatives="o|u|o bien",
        joints="y|e|como",
        options="opción|respuesta|alternativa|opción correcta es|respuesta correcta es",
        answers="respuesta|resultado|solución|soluciones",
        are="es|son",
        wrong="falso|incorrecto|incorrecta|equivocado|descarta",
        solutions="solución|soluciones|raíz|raíces",
        connectives=(
            "por tanto|por lo tanto|entonces|así|luego|pues|en consecuencia|en total|finalmente|por consiguiente"
            "|así pues"
        ),
        words=(
            "el|los|las|es|son|y|sea|tal|vez|finalmente|por|tanto|lo|una|un|que|se|del|al|hay|con|para|respuesta|solución|tiene|está"
            "|mide|vale|cuesta|luego|así|entonces|su|no|la|más|tarda|sus|resultado|de|en|quedan|queda"
        ),
        given=(
            "los|las|estos|estas|esos|esas|sus|en|con|para|cada|por|entre|tras|sobre|desde|durante|después de"
            "|antes de|de los|de las|a los|a las|el|la|al|del"
        ),
        conditions="si|cuando|porque|pues|ya que|como|dado|puesto|para",
        others="otra|otras|otro|otros|más",
        letters="ñ¿¡",
        existing=(
            "hay|existen|existe|se necesitan|se necesita|necesita|tiene|quedan|queda|viven|se consumen|cuesta"
            "|tarda|se pueden formar|son|tienen"
        ),
        decimal_comma=True,
        bounds="menor que|mayor que|menos de|más de|menos que|más que",
        about="aproximadamente|alrededor de|unos",
    ),
    "pt": Language(
        denials=(
            "não|nenhum|nenhuma|jamais|nunca|nem|tampouco|falso|falsa|incorreto|incorreta|errado|errada|impossível"
        ),
        hedges=(
            "talvez|pode ser que|poderia|poderiam|quiçá|não tenho certeza|provavelmente|acho que|acredito que"
            "|suponho|possivelmente|parece que|não sei"
        ),
        alternatives="ou",
        joints="e|como|quanto",
        options="opção|resposta|alternativa",
        answers="resposta|resultado|solução|soluções",
        are="é|são",
        wrong="falso|incorreto|incorreta|errado|errada|descartar",
        solutions="solução|soluções|raiz|raízes",
        connectives="portanto|assim|logo|então|por conseguinte|ao todo|no total|por isso|finalmente|pois|enfim",
        words=(
            "o|os|as|é|são|e|por|pela|pelo|leva|foi|ser|ou|uma|um|que|do|da|dos|das|ao|há|com|para|resposta"
            "|solução|tem|não|logo|portanto|assim|vale|mede|custa|na|no|nos|nas|isso|então|seu|sua|em|de|se"
            "|ela|ele"
        ),
        given=(
            "os|as|esses|essas|estes|estas|seus|suas|em|com|para|cada|por|entre|após|sobre|desde|durante"
            "|depois de|nos|nas|aos|dos|das|às|pelos|pelas|ao|na|no"
        ),
        conditions="se|quando|porque|pois|como|já que|dado|visto|para",
        others="outra|outras|outro|outros|mais",
        letters="ãõ",
        existing=(
            "há|existem|existe|são necessários|são necessárias|precisa de|precisa|tem|restam|gastou|ocorrem"
            "|custa|leva|formam-se|podemos formar"
        ),
        decimal_comma=True,
        bounds="menor que|maior que|menor do que|maior do que|menos de|mais de",
        about="aproximadamente|cerca de|mais ou menos",
    ),
    "it": Language(
        denials=(
            "non|nessun|nessuna|nessuno|mai|né|neanche|falso|falsa|sbagliato|sbagliata|errato|errata|impossibile"
            "|scorretto"
        ),
        hedges=(
            "forse|può darsi|potrebbe|potrebbero|non sono sicuro|non sono sicura|probabilmente|credo|penso"
            "|suppongo|magari|sembra|direi|non so"
        ),
        alternatives="o|oppure|ovvero",
        joints="e|ed|sia|che",
        options="opzione|risposta|alternativa",
        answers="risposta|risultato|soluzione|soluzioni",
        are="è|sono",
        wrong="sbagliato|sbagliata|errato|errata|scorretto|escludere|escluso|ritiro",
        solutions="soluzione|soluzioni|radice|radici",
        connectives="quindi|dunque|pertanto|perciò|allora|in totale|infine|di conseguenza|in conclusione|ovvero",
        words=(
            "il|lo|gli|è|sono|e|che|della|dello|dei|degli|delle|del|una|un|uno|con|quindi|dunque|pertanto|perciò"
            "|non|si|ci|risposta|soluzione|vale|misura|costa|ha|di|nel|nella|risultato|al|alla|allora|sua|suo|la|le|per"
        ),
        given=(
            "i|gli|le|questi|queste|quei|quegli|quelle|suoi|sue|in|con|per|ogni|tra|fra|dopo|su|nei|nelle|negli"
            "|dei|degli|delle|ai|agli|alle|dai|dalle|il|la|nel|sui|sulle"
        ),
        conditions="se|quando|perché|poiché|siccome|dato|per",
        others="altra|altre|altro|altri|più",
        letters="ìò",
        existing=(
            "ci sono|esistono|esiste|servono|serve|occorrono|occorre|ha|hanno|restano|rimangono|formare|costa"
            "|dura|bastano"
        ),
        decimal_comma=True,
        bounds="minore di|maggiore di|meno di|più di",
        about="circa|approssimativamente|all'incirca",
    ),
    "ru": Language(
        denials="не|нет|ни|нельзя|неверно|неправильно|ошибочно|невозможно|исключено|неверный|неверна",
        hedges=(
            "возможно|наверное|вероятно|может быть|пожалуй|не уверен|не уверена|кажется|думаю|по-видимому"
            "|скорее всего|предположительно|могло бы|мог бы|могла бы|не знаю|видимо"
        ),
        alternatives="или|либо",
        joints="и|а также",
        options="вариант|вариантом|вариант ответа|ответ|ответа",
        answers="ответ|результат",
        are="равен|равна|равно|равны|есть|составляет",
        wrong="неверно|неправильно|ошибочно|неверный|неверна|ошибочен",
        solutions="решений|решения|решение|корней|корня",
        connectives="таким образом|следовательно|значит|поэтому|итак|стало быть|итого|в итоге|тем самым|отсюда",
        given=(
            "в|на|за|для|по|через|из|этих|этими|эти|всех|все|каждые|каждый|каждая|каждого|каждому|с|со|между"
            "|после|до|от|при|среди|к|об|о|у"
        ),
        conditions="если|когда|так как|поскольку|потому|при|чтобы",
        others="других|другие|иных|больше",
        scripts="\u0400-\u04ff",
        existing=(
            "существует|есть|имеется|потребуется|требуется|понадобится|нужно|осталось|можно составить|получится|всего"
        ),
        decimal_comma=True,
        bounds="меньше|больше|менее|более|меньше чем|больше чем",
        about="примерно|приблизительно|около",
    ),
    "zh": Language(
        denials=(
            "不选|不選|不是|并不是|不等于|不为|并非|而不是|不應該是|不应该是|不可能|不对|错误|錯誤|不正确|不正確|不会是"
            "|不能|不應|排除|无法|未能|無法"
        ),
        hedges=(
            "可能|可能等于|也许|也許|大概是|或许|或許|我猜|不确定|不確定|不太确定|似乎|猜测|猜測|说不定|大概"
            "|估计|好像|不知道"
        ),
        alternatives="或者|还是|或",
        joints="和|与|及|以及|與",
        options="选项|选|選|选择|選擇|答案|答案是",
        answers="答案|结果|結果|解",
        are="是|为|為",
        wrong="错了|算错|作废|撤回|收回|不对",
        solutions="解|根|实根|实数解",
        connectives="所以|因此|于是|从而|综上|可见|故|总之|那么",
        given="这|這|那|每|在|从|從|由|其中|用|经过|經過|这些|当|把|将|給|给",
        conditions="如果|若|因为|由于|因為|由於|假设|已知|此时|此時|当且仅当",
        others="其他|其它|别的|没有更多",
        given_behind="中|之中",
        scripts="\u3400-\u9fff",
        spaced=False,
        existing="共有|总共有|有|一共有|需要|可以组成|得到|共需|一共需要|还剩",
        bounds="小于|大于|少于|多于|超过|不到|不足",
        about="约|約|大约|大約|约为|約為|约等于",
    ),
    "ja": Language(
        denials=(
            "ではありません|ではない|ではなく|ではなかった|じゃない|でない|とはならない|にはならない"
            "|にならない|なりません|違います|違う|誤り|間違い|正しくない|正しくありません|不正解|になりえない"
            "|とは言えない|とはいえない|ありえない|ません|ない"
        ),
        hedges=(
            "たぶん|多分|おそらく|かもしれ|でしょうか|と思われ|と思い|ようです|気がし|だろうか|可能性|はず"
            "|わかりません|分かりません|推測|自信がな|もしかする"
        ),
        alternatives="または|あるいは|もしくは|か",
        joints="と|および|及び",
        answers="答え|解答|正解",
        are="は",
        wrong="誤り|間違い|間違って|撤回|取り消|訂正",
        solutions="解",
        connectives="したがって|よって|ゆえに|つまり|以上より|すなわち",
        given="この|その|これらの|各|毎",
        conditions="もし",
        others="他に|ほかに|他の",
        given_behind="のうち|の中|中から|から|のとき|の時",
        scripts="\u3040-\u30ff",
        spaced=False,
        denied_behind=True,
        existing="全部で|合計|合わせて",
        bounds="より小さい|より大きい|より少ない|より多い|未満",
        about="約|およそ|ほぼ",
    ),
    "ko": Language(
        denials=(
            "아니다|아닙니다|아니라|아니고|아니며|아니에요|않다|않습니다|않는다|않고|틀렸|틀린|될 수 없"
            "|일 수 없|불가능|없다|없습니다|오답|수는 없"
        ),
        hedges="아마|일지도|일 수도|것 같|확실하지|모르겠|추측|듯하|듯합|지도 모|가능성|까요|잘 모르",
        alternatives="또는|혹은|이거나|거나",
        joints="와|과|그리고|및|이고",
        answers="정답|답",
        are="은|는",
        wrong="틀렸|틀린|잘못|취소|오답|철회",
        solutions="해|근|실근",
        connectives="따라서|그러므로|즉|결국",
        given="이|그|각|매",
        conditions="만약|만일",
        others="다른",
        given_behind="중|에서|일 때|부터",
        scripts="\uac00-\ud7af",
        spaced=False,
        denied_behind=True,
        existing="모두|총|전부",
        bounds="보다 작|보다 크|보다 적|보다 많|미만|초과",
        about="약|대략",
    ),
    "ar": Language(
        denials=(
            "ليس|ليست|وليس|وليست|لا يساوي|لا تساوي|لا يمكن|غير صحيح|غير صحيحة|خطأ|خاطئ|خاطئة|مستحيل|لن|لم|ما هو"
            "|لا|فليس|فليست"
        ),
        hedges=(
            "ربما|قد يكون|قد تكون|لعل|لست متأكدا|لست متأكدًا|لست متأكدة|أظن|أعتقد|من المحتمل|يبدو|من الممكن"
            "|لا أعرف|لا أدري"
        ),
        alternatives="أو|إما",
        joints="و",
        answers="الجواب|الإجابة",
        are="هو|هي",
        wrong="غير صحيح|غير الصحيح|خطأ|خاطئ|خاطئة|أتراجع",
        solutions="حل|حلول|حلا|جذور",
        connectives="إذن|لذلك|وعليه|وبالتالي|بالتالي|ومن ثم|إذًا",
        given="في|من|على|خلال|بعد|قبل|كل|هذه|هؤلاء|الـ|إلى|عند|لكل|مع|بين",
        conditions="إذا|عندما|لأن|حيث|بما|لو|لقطع",
        others="أخرى|غيرها|آخر",
        scripts="\u0600-\u06ff",
        existing="هناك|توجد|يوجد|نحتاج|يلزم|هناك إذن|توجد إذن|لدينا",
        bounds="أقل من|أكثر من|أصغر من|أكبر من",
        about="حوالي|تقريبا|نحو",
    ),
    "hi": Language(
        denials="नहीं|ग़लत|गलत|असंभव|मत",
        hedges=("शायद|हो सकता है|हो सकती है|हो सकते हैं|संभवतः|लगता है|पक्का नहीं|निश्चित नहीं|अनुमान|मालूम नहीं|पता नहीं"),
        alternatives="या|अथवा",
        joints="और|तथा|एवं|व",
        answers="उत्तर",
        are="है",
        wrong="गलत|ग़लत|वापस लेता|वापस लेती",
        solutions="हल|समाधान|मूल",
        connectives="अतः|इसलिए|तो|इस प्रकार|अर्थात|अतएव",
        given="इन|उन|प्रत्येक|हर|सभी",
        conditions="यदि|अगर|जब|क्योंकि|चूँकि|चूंकि",
        others="अन्य|और कोई",
        given_behind="में से|में|से|को",
        scripts="\u0900-\u097f",
        denied_behind=True,
        existing="कुल",
        bounds="से कम|से अधिक|से छोट|से बड़|से ज़्यादा",
        about="लगभग|करीब",
    ),
}
