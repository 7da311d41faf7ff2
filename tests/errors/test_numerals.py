"""Los números se escriben en español."""

import pytest

from enlace.errors.numerals import decimal, duration, gib, percent, power, thousands


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (thousands(1_234_567), "1.234.567"),
        (decimal(1234.5678, 2), "1.234,57"),
        (decimal(1.8978, 4), "1,8978"),
        (power(24_500_000_000_000), "2,45·10¹³"),
        (percent(0.437), "44 %"),
        (percent(-0.012, sign=True), "−1 %"),
        (percent(0.3, sign=True), "+30 %"),
        (gib(3 * 2**29), "1,50 GiB"),
        (duration(None), "desconocido"),
        (duration(42), "42 s"),
        (duration(90), "2 min"),
        (duration(11_400), "3 h 10 min"),
        (duration(86_400), "24 h 0 min"),
    ],
)
def test_numbers_read_as_a_spanish_speaker_writes_them(written: str, expected: str) -> None:
    assert written == expected
