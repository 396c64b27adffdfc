"""Table of currencies with their signs, codes and names."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A currency. A sign or name that is in several rows is ambiguous.

    Args:
        code: three-letter code.
        signs: signs before or after the amount, separated by spaces.
        names: names in the singular and in lower case, separated by spaces, with `_` for a space in a name.
        hundredths: names of a hundredth of the currency, in the format of `names`.
        tenths: names of a tenth of the currency, in the format of `names`.
    """

    code: str
    signs: str
    names: str
    hundredths: str = ""
    tenths: str = ""


CURRENCIES = (
    Row(
        "USD",
        "$ US$ U.S.$",
        (
            "dollar usd buck us_dollar u.s._dollar dólar доллар доллара долларов dólares dollari dollaro"
            " دولار डॉलर 달러 美元 ドル"
        ),
        "cent ¢ c",
    ),
    Row("EUR", "€", "euro eur евро 欧元 ユーロ 유로 يورو यूरो", "cent c eurocent centime"),
    Row("GBP", "£", "pound gbp quid pound_sterling livre 英镑", "pence penny p"),
    Row("JPY", "¥ 円", "yen 日元 円"),
    Row("CNY", "¥ RMB CN¥", "yuan renminbi 元 人民币 块 块钱", "分", "角 毛"),
    Row("INR", "₹ Rs Rs.", "rupee inr रुपये रुपया रुपए रुपयों", "paise paisa"),
    Row("PKR", "Rs Rs.", "rupee", "paisa"),
    Row("CAD", "$ C$ CA$", "dollar canadian_dollar", "cent ¢"),
    Row("AUD", "$ A$ AU$", "dollar australian_dollar", "cent ¢"),
    Row("NZD", "$ NZ$", "dollar new_zealand_dollar", "cent ¢"),
    Row("SGD", "$ S$", "dollar singapore_dollar", "cent ¢"),
    Row("HKD", "$ HK$", "dollar hong_kong_dollar 港元", "cent ¢"),
    Row("MXN", "$ MX$", "peso mexican_peso", "centavo"),
    Row("ARS", "$", "peso"),
    Row("COP", "$", "peso"),
    Row("CLP", "$", "peso"),
    Row("PHP", "₱", "peso", "centavo"),
    Row("BRL", "R$", "real reais", "centavo"),
    Row("CHF", "Fr Fr.", "franc franken swiss_franc", "rappen centime"),
    Row("SEK", "kr", "krona kronor krone"),
    Row("NOK", "kr", "krone kroner"),
    Row("DKK", "kr", "krone kroner", "øre"),
    Row("RUB", "₽ руб руб.", "ruble rouble рубль рубля рублей рублям рублю рублями", "kopeck копейка копейки копеек"),
    Row("UAH", "₴", "hryvnia гривна гривен"),
    Row("PLN", "zł", "zloty złoty złotych", "grosz groszy"),
    Row("CZK", "Kč", "koruna korun"),
    Row("HUF", "Ft", "forint"),
    Row("TRY", "₺", "lira", "kuruş"),
    Row("ILS", "₪", "shekel", "agora"),
    Row("KRW", "₩", "won 원 韩元 ウォン"),
    Row("VND", "₫", "dong đồng"),
    Row("THB", "฿", "baht"),
    Row("IDR", "Rp", "rupiah"),
    Row("MYR", "RM", "ringgit", "sen"),
    Row("NGN", "₦", "naira", "kobo"),
    Row("KES", "KSh Ksh", "shilling"),
    Row("ZAR", "R", "rand", "cent"),
    Row("EGP", "E£", "egyptian_pound جنيه", "piastre"),
    Row("SAR", "", "riyal ريال ريالا ريالات"),
    Row("AED", "", "dirham درهم دراهم"),
    Row("BDT", "৳", "taka"),
    Row("BTC", "₿", "bitcoin"),
)
