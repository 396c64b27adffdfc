"""Units right behind a number or formula of a text."""

from __future__ import annotations

_NAMES = (
    "millimeters? millimetres? centimeters? centimetres? decimeters? decimetres? meters? metres? kilometers?"
    " kilometres? inch inche?s foot feet yards? miles? milligrams? grams? kilograms? ounces? pounds? milliliters?"
    " millilitres? liters? litres? cups? pints? quarts? gallons? milliseconds? secs? seconds? mins? minutes? hrs?"
    " hours? days? weeks? months? years? dozens? cents? dollars? bucks? usd euros? eur rupees? inr gbp yen jpy"
    " joules? kilojoules? electronvolts? calories? newtons? kilonewtons? watts? kilowatts? pascals? volts? hertz"
    " celsius fahrenheit kelvin cm mm km kg mg ml mL mph kph ft lbs? oz"
)
NAMES = "|".join(sorted(_NAMES.split(), key=len, reverse=True))
"""A pattern of the names that units have in prose."""
IN_PROSE = (
    rf"[*$]{{0,2}}[ -]?(?:\\text\{{ ?)?(?P<unit>(?:(?:square|cubic|sq\.?|cu\.?) )?(?:{NAMES}|[mgL])(?![A-Za-z'])"
    rf"(?:\s?(?:\^?[23](?!\d)|[²³]))?(?:\s?(?:/|per)\s?(?:{NAMES}|[sh])(?![A-Za-z'])[²]?)?|¢)"
)
"""A pattern of the unit right behind a number or formula of a text."""
