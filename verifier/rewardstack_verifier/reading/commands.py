"""What the lexer does with commands of LaTeX: data. A command that is in no table is a token of its own."""

from __future__ import annotations

from rewardstack_verifier.reading.names import names

DROPPED = names(
    "left right mleft mright middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm"
    " displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits quad qquad enspace thinspace medspace"
    " thickspace negthinspace noindent hfill hfil newline par nobreak allowbreak relax strut hline cdotp mathstrut"
    " normalsize large Large LARGE huge Huge small footnotesize tiny bf rm it sf tt cal bfseries itshape rmfamily em"
    " ensuremath mathord mathop mathbin mathrel mathopen mathclose boldmath unboldmath centering protect blacksquare"
    " checkmark qed , ; : ! > /"
)
"""Looks and spaces alone."""

SPACES = names("quad qquad enspace thinspace medspace thickspace , ; : >")
"""Of those, the ones that set a space."""

UNWRAPPED = names(
    "mathbf boldsymbol bm mathit mathsf mathtt mathcal mathscr mathfrak pmb boxed fbox framebox underline uline smash"
    " mathclap mathrlap mathllap emph bold cancel hbox overbrace underbrace"
)
"""Fonts and frames of one argument, which stays."""

TEXT = names("text textbf textit textrm textsf texttt textnormal mbox mathrm operatorname operatorname* textup")
"""Of one argument, which is words, or a name set upright."""

HIDDEN = names(
    "phantom hphantom vphantom hspace hspace* vspace vspace* color label tag tag* rule kern mspace leftroot uproot"
)
"""Of one argument, which nobody sees as part of the answer."""

COLOURED = names("textcolor colorbox fcolorbox")
"""Of two arguments: a colour, and what stays."""

ALIASES = {
    "dfrac": "frac",
    "tfrac": "frac",
    "cfrac": "frac",
    "nicefrac": "frac",
    "sfrac": "frac",
    "dbinom": "binom",
    "tbinom": "binom",
    "leq": "le",
    "leqslant": "le",
    "lt": "<",
    "gt": ">",
    "geq": "ge",
    "geqslant": "ge",
    "neq": "ne",
    "ast": "*",
    "cdot": "*",
    "times": "*",
    "div": "/",
    "lbrace": "\\{",
    "rbrace": "\\}",
    "lbrack": "[",
    "rbrack": "]",
    "lgroup": "(",
    "rgroup": ")",
    "overline": "bar",
    "widehat": "hat",
    "widetilde": "tilde",
    "lparen": "(",
    "rparen": ")",
    "vert": "|",
    "lvert": "|",
    "rvert": "|",
    "mid": "|",
    "Vert": "|",
    "lVert": "|",
    "rVert": "|",
    "dots": "ldots",
    "cdots": "ldots",
    "dotsc": "ldots",
    "dotsb": "ldots",
    "varepsilon": "epsilon",
    "vartheta": "theta",
    "varphi": "phi",
    "varnothing": "emptyset",
    "O": "emptyset",
    "circ": "degree",
    "bigcup": "cup",
    "bigcap": "cap",
    "wedge": "land",
    "vee": "lor",
    "backslash": "setminus",
    "overrightarrow": "vec",
    "arrow": "to",
    "rightarrow": "to",
    "longrightarrow": "to",
    "implies": "Rightarrow",
    "Longrightarrow": "Rightarrow",
    "iff": "Rightarrow",
    "Leftrightarrow": "Rightarrow",
    "simeq": "approx",
    "cong": "approx",
    "doteq": "approx",
    "sim": "approx",
    "prime": "'",
    "colon": ":",
    "and": "land",
    "arcctg": "arccot",
    "tg": "tan",
    "ctg": "cot",
    "cosec": "csc",
    "sh": "sinh",
    "ch": "cosh",
    "th": "tanh",
    "lg": "log10",
    "textdegree": "degree",
    "degrees": "degree",
    "textdollar": "$",
    "texteuro": "€",
    "textsterling": "£",
    "euro": "€",
    "pounds": "£",
    "yen": "¥",
    "cent": "¢",
}
"""Other names of one thing."""

DEGREES = names("degrees degree deg")
"""Words for the sign of degrees."""
