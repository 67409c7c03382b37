"""Amounts of money: an amount and a currency, stored as `{"amount": "12.50", "currency": "EUR"}`."""

import re

from store.model.values.kinds import PARSE, VALID, Kind, Value

_CODE = re.compile(r"[A-Z]{3}")

CURRENCIES = frozenset(
    (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE "
        "CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR "
        "LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN "
        "PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS "
        "TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC "
        "XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG"
    ).split()
)
"""Codes of ISO 4217, of which XXX stands for no currency. A stored value may have another one, such as that of a
currency that exists no more.
"""


def parse_money(value: object) -> Value:
    """An object with amount and currency, or a text such as `12.50 EUR`; None for anything else.

    The amount keeps its places; it is a decimal of up to 38 digits. Raises ValueError, TypeError or ArithmeticError
    for an invalid amount.
    """
    if isinstance(value, str):
        amount, _, currency = value.strip().rpartition(" ")
        value = {"amount": amount, "currency": currency}
    if not isinstance(value, dict) or value.keys() != {"amount", "currency"}:
        return None
    found = PARSE[Kind.DECIMAL](value["amount"])
    return {"amount": found, "currency": value["currency"]} if found and value["currency"] in CURRENCIES else None


def is_money(value: Value) -> bool:
    """Whether a stored value is an amount of money."""
    if not isinstance(value, dict) or value.keys() != {"amount", "currency"}:
        return False
    currency = value["currency"]
    return VALID[Kind.DECIMAL](value["amount"]) and isinstance(currency, str) and bool(_CODE.fullmatch(currency))
