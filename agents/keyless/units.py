"""Units of measurement and currencies with the ways people write them; data and one normal form."""

from __future__ import annotations

import re

_TABLE = """
millimeter: mm | centimeter: cm | decimeter: dm | meter: m | kilometer: km, kms | inch: in, " | foot: ft
yard: yd, yds | mile: mi | nautical mile: nmi, nm | light year: ly | micrometer: um, µm, micron | nanometer | angstrom
furlong | fathom
milligram: mg | microgram: ug, µg | gram: g | kilogram: kg, kgs, kilo | tonne: t, metric ton | pound: lb, lbs
ounce: oz
stone: st | short ton | long ton | carat: ct | grain: gr
celsius: c, C, centigrade, degree celsius, degree c | fahrenheit: f, F, degree fahrenheit, degree f
kelvin: k, K, degree kelvin
liter: l, L | milliliter: ml, mL | centiliter: cl | deciliter: dl | gallon: gal | quart: qt | pint: pt | cup
fluid ounce: fl oz | tablespoon: tbsp | teaspoon: tsp | cubic meter: m3, m³ | cubic centimeter: cc, cm3, cm³
cubic foot: ft3, ft³ | barrel: bbl
square meter: m2, m², sqm, sq m | square kilometer: km2, km², sq km | square foot: ft2, ft², sq ft, sqft
square mile: sq mi
square inch: sq in | square yard: sq yd | hectare: ha | acre: ac | are
second: s, sec, secs | minute: min, mins | hour: h, hr, hrs | day: d | week: wk | month | year: yr | decade
century | millisecond: ms | microsecond | nanosecond: ns | fortnight
kilometer per hour: km/h, kmh, kph | mile per hour: mph | meter per second: m/s | foot per second: ft/s, fps
knot: kn, kt
joule: J, j | kilojoule: kJ, kj | calorie: cal | kilocalorie: kcal | watt hour: wh | kilowatt hour: kwh, kWh | btu
electron volt: ev, eV | watt: W, w | kilowatt: kW, kw | megawatt: MW, mw | horsepower: hp
pascal: Pa, pa | kilopascal: kPa, kpa | hectopascal: hPa, hpa | megapascal: mpa, MPa | bar | atmosphere: atm | psi
millimeter of mercury: mmhg, mmHg
bit | byte: b, B | kilobyte: kb, KB, kB | megabyte: mb, MB | gigabyte: gb, GB | terabyte: tb, TB | petabyte: pb, PB
degree: deg | radian: rad | arcminute: arcmin | arcsecond: arcsec | turn: revolution | gon: gradian
newton: N | kilonewton: kN, kn | dyne | pound force: lbf | kilogram force: kgf
"""

UNITS: dict[str, tuple[str, ...]] = {
    name.strip(): tuple(alias.strip() for alias in aliases.split(",") if alias.strip())
    for entry in re.split(r"[|\n]", _TABLE)
    if entry.strip()
    for name, _, aliases in (entry.partition(":"),)
}
"""Normal form -> other spellings."""

CURRENCIES: dict[str, tuple[str, ...]] = {
    "USD": ("$", "dollar", "us dollar", "american dollar"),
    "EUR": ("€", "euro"),
    "GBP": ("£", "british pound", "pound sterling", "pound", "sterling"),
    "JPY": ("¥", "yen", "japanese yen"),
    "CHF": ("swiss franc", "franc"),
    "CNY": ("yuan", "renminbi"),
    "INR": ("rupee", "indian rupee"),
    "CAD": ("canadian dollar",),
    "AUD": ("australian dollar",),
    "NZD": ("new zealand dollar",),
    "SEK": ("swedish krona", "swedish kronor"),
    "NOK": ("norwegian krone",),
    "DKK": ("danish krone",),
    "PLN": ("zloty",),
    "CZK": ("czech koruna",),
    "HUF": ("forint",),
    "MXN": ("mexican peso",),
    "BRL": ("brazilian real",),
    "ZAR": ("rand",),
    "KRW": ("won",),
    "TRY": ("turkish lira", "lira"),
    "SGD": ("singapore dollar",),
    "HKD": ("hong kong dollar",),
    "THB": ("baht",),
    "ILS": ("shekel",),
    "BTC": ("bitcoin",),
}
"""ISO code -> names and signs."""

_IRREGULAR = {
    "feet": "foot", "inches": "inch", "centuries": "century", "kronor": "kronor", "celsius": "celsius",
    "gas": "gas", "secs": "sec", "fps": "fps", "ms": "ms", "ns": "ns", "s": "s", "hertz": "hertz",
}  # fmt: skip


def canonical(said: str) -> str:
    """A spelling in its normal form: lower case, singular, American, spaces for hyphens."""
    plain = re.sub(r"[\s‑_-]+", " ", said.lower()).strip()
    return " ".join(_american(_singular(word)) for word in plain.split())


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _american(word: str) -> str:
    return word[:-2] + "er" if re.search(r"(?:met|lit|cent)re$", word) else word.replace("gramme", "gram")
