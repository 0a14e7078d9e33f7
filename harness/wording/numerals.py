"""Small numbers in letters."""

NUMERALS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def numeral(number: int) -> str:
    """Return a number in letters up to twelve, in digits above.

    >>> numeral(7), numeral(1300)
    ('seven', '1,300')
    """
    return NUMERALS[number] if number < len(NUMERALS) else f"{number:,}"


def capital_numeral(number: int) -> str:
    """Return a number as it begins a sentence.

    >>> capital_numeral(4)
    'Four'
    """
    return numeral(number).capitalize()
