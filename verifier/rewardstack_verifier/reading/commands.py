"""Tables of LaTeX commands that the lexer drops, unwraps or renames; any other command becomes a token."""

from __future__ import annotations

from rewardstack_verifier.reading.names import FUNCTION_ALIASES, word_set

DROPPED = word_set(
    "left right mleft mright middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm"
    " displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits quad qquad enspace thinspace medspace"
    " thickspace negthinspace noindent hfill hfil newline par nobreak allowbreak relax strut hline cdotp mathstrut"
    " normalsize large Large LARGE huge Huge small footnotesize tiny bf rm it sf tt cal bfseries itshape rmfamily em"
    " ensuremath mathord mathop mathbin mathrel mathopen mathclose boldmath unboldmath centering protect blacksquare"
    " checkmark qed , ; : ! > /"
)
"""Commands that change only the appearance or spacing."""

SPACES = word_set("quad qquad enspace thinspace medspace thickspace , ; : >")
"""Commands of `DROPPED` that count as a space before the next token."""

UNWRAPPED = word_set(
    "mathbf boldsymbol bm mathit mathsf mathtt mathcal mathscr mathfrak pmb boxed fbox framebox underline uline smash"
    " mathclap mathrlap mathllap emph bold hbox overbrace underbrace num"
)
"""Commands for fonts and frames; only their argument is kept."""

TEXT = word_set("text textbf textit textrm textsf texttt textnormal mbox mathrm operatorname operatorname* textup")
"""Commands whose argument is text or an upright name."""

HIDDEN = word_set(
    "phantom hphantom vphantom hspace hspace* vspace vspace* color label tag tag* rule kern mspace leftroot uproot"
    " cancel bcancel xcancel sout"
)
"""Commands to drop together with their argument, which is invisible or not part of the answer."""

COLORED = word_set("textcolor colorbox fcolorbox")
"""Commands with two arguments: a color, which is dropped, and the text."""

ALIASES = {
    alias: name
    for name, aliases in {
        "frac": "dfrac tfrac cfrac nicefrac sfrac",
        "binom": "dbinom tbinom",
        "le": "leq leqslant",
        "<": "lt",
        ">": "gt",
        "ge": "geq geqslant",
        "ne": "neq",
        "*": "ast cdot times",
        "/": "div",
        "\\{": "lbrace",
        "\\}": "rbrace",
        "±": "pm",
        "∓": "mp",
        "[": "lbrack",
        "]": "rbrack",
        "(": "lgroup lparen",
        ")": "rgroup rparen",
        "bar": "overline",
        "hat": "widehat",
        "tilde": "widetilde",
        "|": "vert lvert rvert mid Vert lVert rVert",
        "ldots": "dots cdots dotsc dotsb",
        "epsilon": "varepsilon",
        "theta": "vartheta",
        "phi": "varphi",
        "emptyset": "varnothing O",
        "degree": "circ textdegree degrees",
        "cup": "bigcup",
        "cap": "bigcap",
        "land": "wedge and",
        "lor": "vee",
        "setminus": "backslash",
        "vec": "overrightarrow",
        "to": "arrow rightarrow longrightarrow",
        "Rightarrow": "implies Longrightarrow iff Leftrightarrow",
        "approx": "simeq cong doteq sim",
        "'": "prime",
        ":": "colon",
        "$": "textdollar",
        "€": "texteuro euro",
        "£": "textsterling pounds",
        "¥": "yen",
        "¢": "cent",
    }.items()
    for alias in aliases.split()
} | FUNCTION_ALIASES
"""Name that replaces each alias."""

LETTER_COMMANDS = {"imath": "i", "jmath": "j"}
"""Letter of each command for a letter without its dot."""

DEGREES = word_set("degrees degree deg")
"""Words for the degree sign."""
