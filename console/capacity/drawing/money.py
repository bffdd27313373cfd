"""Dollars as pages write them: amounts with cents, rates with every digit they have ($1.995)."""

from decimal import ROUND_HALF_EVEN, Decimal

CENT = Decimal("0.01")


def amount(dollars: Decimal) -> str:
    """$1,502.88, rounded half-even to cents."""
    return f"${dollars.quantize(CENT, ROUND_HALF_EVEN):,}"


def rate(dollars: Decimal) -> str:
    """$1.995 or $3.99: never rounded, at least two places."""
    plain = dollars.normalize()
    places = -int(plain.as_tuple().exponent)
    return f"${plain:,f}" if places >= 2 else f"${plain.quantize(CENT):,f}"
