#!/usr/bin/env python3
"""Writes numbers.txt and scalars.txt beside itself; with --check only compares, as TAP.

An implementation of its own of both formats (src/doc/README.md), in exact rational numbers, so that
a mistake in the C code shows as a difference.
"""

import decimal
import fractions
import math
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
Exact = fractions.Fraction
sys.set_int_max_str_digits(0)
decimal.getcontext().prec = 12000
decimal.getcontext().Emax = 10**9
decimal.getcontext().Emin = -10**9

# ---- Keys of numbers ----


def exponent(n):
    if -64 <= n <= 63:
        return bytes([0x80 + n])
    beyond = n - 64 if n > 0 else -65 - n
    size = max(1, (beyond.bit_length() + 7) // 8)
    raw = beyond.to_bytes(size, "big")
    if n > 0:
        return bytes([0xc0 + size - 1]) + raw
    return bytes([0x3f - (size - 1)]) + bytes(255 - b for b in raw)


def decimal_tail(x):
    """x > 0 has a finite number of digits."""
    power = 0
    while x.denominator != 1:
        x *= 10
        power -= 1
    digits = str(x.numerator)
    at = len(digits) + power
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    pairs = [int(digits[i:i + 2]) for i in range(0, len(digits), 2)]
    return exponent(at) + bytes(2 * p + (i + 1 < len(pairs)) for i, p in enumerate(pairs))


def highest_bit(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Exact(2) ** e else e - 1


def key(x):
    """Of a Fraction, or of "nan", "inf", "-inf"."""
    if x in ("nan", "inf", "-inf"):
        return {"nan": b"\x20", "-inf": b"\x21", "inf": b"\x29"}[x]
    if x == 0:
        return b"\x25"
    plus = abs(x)
    e = highest_bit(plus)
    if e < -1074:
        first, rest = 0x26, decimal_tail(plus)
    elif e > 1023:
        first, rest = 0x28, decimal_tail(plus)
    else:
        first = 0x27
        scaled = (plus / Exact(2) ** e - 1) * 2**63
        bits = scaled.numerator // scaled.denominator
        exact = scaled == bits
        groups = [bits >> (63 - 7 * (i + 1)) & 127 for i in range(9)]
        if exact:
            while len(groups) > 1 and not groups[-1]:
                groups.pop()
        rest = exponent(e) + bytes(2 * g + (not exact or i + 1 < len(groups))
                                   for i, g in enumerate(groups))
        if not exact:
            rest += decimal_tail(plus)
    if x > 0:
        return bytes([first]) + rest
    return bytes([2 * 0x25 - first]) + bytes(255 - b for b in rest)


def double(d):
    bits = struct.pack(">d", d).hex()
    if math.isnan(d):
        return ("double", bits), "nan"
    if math.isinf(d):
        return ("double", bits), "inf" if d > 0 else "-inf"
    return ("double", bits), Exact(d)


def single(f):
    raw = struct.pack(">f", f)
    return ("float", raw.hex()), double(struct.unpack(">f", raw)[0])[1]


def int32(n):
    return ("int32", str(n)), Exact(n)


def int64(n):
    return ("int64", str(n)), Exact(n)


def magnitude(n):
    raw = abs(n).to_bytes((abs(n).bit_length() + 7) // 8, "big").hex()
    return ("-" if n < 0 else "") + raw


def integer(n):
    return ("integer", magnitude(n)), Exact(n)


def scaled_decimal(n, scale):
    return ("decimal", str(scale), magnitude(n)), Exact(n) / Exact(10) ** scale


def decimal128(text):
    """As written, trailing zeros included."""
    if text.lower().strip("+-") in ("nan", "inf"):
        high = (0x7c if "n" in text.lower()[-3:-2] else 0x78) << 56
        value = "nan" if text.lower().endswith("nan") else "inf"
        if value == "inf" and text.startswith("-"):
            high, value = high | 1 << 63, "-inf"
        return ("decimal128", f"{high:016x}{0:016x}"), value
    sign, digits, power = decimal.Decimal(text).as_tuple()
    coefficient = int("".join(map(str, digits)))
    while power > 6111:  # as much as the coefficient has room for
        coefficient *= 10
        power -= 1
    assert coefficient < 10**34 and -6176 <= power <= 6111, text
    bits = sign << 127 | (power + 6176) << 113 | coefficient
    value = Exact(coefficient) * Exact(10) ** power
    return ("decimal128", f"{bits:032x}"), -value if sign else value


def numbers():
    doubles = [0.0, -0.0, 0.1, 0.5, 1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 0.25, 1 / 3, math.pi,
               1e22, 1e23, 1e100, 1e308, 5e-324, 1e-323, 2.2250738585072014e-308,
               2.225073858507201e-308, 1.7976931348623157e308, 2.0**53, 2.0**53 - 1, 2.0**53 + 2,
               2.0**63, 2.0**64, 2.0**62, 9223372036854774784.0, 1e-7, 123.456, float("inf"),
               float("nan")]
    integers = [0, 1, 2, 3, 7, 10, 63, 64, 65, 99, 100, 127, 128, 129, 255, 256, 1000, 65535, 65536,
                2**31 - 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1]
    longs = [2**63, 2**63 + 1, 2**64 - 1, 2**64, 2**64 + 1, 2**65 + 1, 10**19, 10**20, 10**22,
             10**23, 10**34, 10**34 + 1, 2**128, 2**1023, 2**1024 - 1, 2**1024, 2**1024 + 1,
             10**308, 10**309, 10**400, 10**1000, 7**2000, int(1e23)]
    decimals = ["0", "0.0", "0E+6111", "0E-6176", "0.1", "0.10", "0.5", "0.50", "1", "1.0", "1.00",
                "1.1", "1.10", "10", "1E1", "1E2", "100", "9007199254740993",
                "9223372036854775808", "18446744073709551616", "1E22", "1E+23",
                "9.999999999999999161139200000000000E+22", "1E+308", "1E+309", "1E+400", "1E+6144",
                "9.999999999999999999999999999999999E+6144", "1E-6176", "1E-6143", "2E-6176",
                "1E-324", "4E-324", "5E-324", "4.940656458412465441765687928682213E-324",
                "4.940656458412465441765687928682214E-324", "1E-323", "1E-308",
                "1.797693134862315708145274237317043E+308",
                "1.797693134862315907729305190789024E+308",
                "1.797693134862315907729305190789025E+308", "123.456", "0.3333333333333333",
                "0.3333333333333333148296162562473909", "3.141592653589793",
                "3.141592653589793115997963468544185",
                "0.1000000000000000055511151231257827", "99999999999999999999999999999999.99",
                "1234567890123456789012345678901234", "1E-7"]
    out = [double(d) for d in doubles]
    out += [double(-d) for d in doubles if d and d == d]
    out += [single(f) for f in (0.1, 1.0, -1.5, 1e-45, 3.4028234663852886e38, float("inf"))]
    for n in integers:
        for m in {n, -n}:
            if -2**31 <= m < 2**31:
                out.append(int32(m))
            out += [int64(m), integer(m)]
    out += [int32(-2**31), int64(-2**63)]
    for n in longs:
        out += [integer(n), integer(-n)]
    for text in decimals:
        out += [decimal128(text), decimal128("-" + text)]
    out += [decimal128("NaN"), decimal128("inf"), decimal128("-inf")]
    for n, scale in ((0, 5), (1, 0), (10, 1), (100, 2), (1, 1), (1, -1), (5, 324), (1, 10000),
                     (1, -10000), (2**70, 3), (12345, 2**31 - 1), (12345, -2**31), (1, 400)):
        out.append(exact_decimal(n, scale))
        if n:
            out.append(exact_decimal(-n, scale))
    return out


def exact_decimal(n, scale):
    """Scales of two thousand million are not written out as fractions."""
    if abs(scale) < 100000:
        return scaled_decimal(n, scale)
    return ("decimal", str(scale), magnitude(n)), Scaled(n, scale)


class Scaled:
    """n times 10^-scale, beyond the range of doubles."""

    def __init__(self, n, scale):
        self.n, self.scale = n, scale

    def key(self):
        digits = str(abs(self.n))
        at = len(digits) - self.scale
        digits = digits.rstrip("0")
        digits += "0" * (len(digits) % 2)
        pairs = [int(digits[i:i + 2]) for i in range(0, len(digits), 2)]
        rest = exponent(at) + bytes(2 * p + (i + 1 < len(pairs)) for i, p in enumerate(pairs))
        first = 0x28 if at > 0 else 0x26
        if self.n > 0:
            return bytes([first]) + rest
        return bytes([2 * 0x25 - first]) + bytes(255 - b for b in rest)

    def order(self):
        sign = 1 if self.n > 0 else -1
        return (sign * 2, 0) if self.scale < 0 else (0, sign)


def order(value):
    """By value alone: what the keys are checked against."""
    if value == "nan":
        return (-9, 0, 0)
    if value == "-inf":
        return (-8, 0, 0)
    if value == "inf":
        return (8, 0, 0)
    if isinstance(value, Scaled):
        large, small = value.order()
        return (large, 0, small)
    return (0, value, 0)


def numbers_text():
    rows = []
    for fields, value in numbers():
        made = value.key() if isinstance(value, Scaled) else key(value)
        rows.append((order(value), fields, made))
    rows.sort(key=lambda row: (row[0], row[1]))
    for (a, _, key_a), (b, _, key_b) in zip(rows, rows[1:]):
        assert (a == b) == (key_a == key_b) and (a < b) == (key_a < key_b), (a, b)
    lines = ["# Numbers and their keys, in ascending order: README.md. Made by make.py."]
    lines += ["\t".join((*fields, made.hex())) for _, fields, made in rows]
    return "\n".join(lines) + "\n"


# ---- Scalars in leaves ----


def t_bytes(raw, code=1):
    return bytes([code]) + raw.replace(b"\0", b"\0\xff") + b"\0"


def t_text(text):
    return t_bytes(text.encode(), 2)


def t_int(n):
    size = (abs(n).bit_length() + 7) // 8
    raw = (n if n >= 0 else n + (1 << 8 * size) - 1).to_bytes(size, "big")
    if size <= 8:
        return bytes([0x14 + (size if n >= 0 else -size)]) + raw
    if n > 0:
        return bytes([0x1d, size]) + raw
    return bytes([0x0b, size ^ 0xff]) + raw


def t_double(d):
    bits = struct.unpack(">Q", struct.pack(">d", d))[0]
    bits = bits ^ (2**64 - 1) if bits >> 63 else bits ^ 2**63
    return b"\x21" + struct.pack(">Q", bits)


def t_float(f):
    bits = struct.unpack(">I", struct.pack(">f", f))[0]
    bits = bits ^ (2**32 - 1) if bits >> 31 else bits ^ 2**31
    return b"\x20" + struct.pack(">I", bits)


def nested(*elements):
    return b"\x05" + b"".join(b"\0\xff" if e == b"\0" else e for e in elements) + b"\0"


def tagged(kind, *elements):
    return nested(t_int(kind), *elements)


def hexed(value):
    return (value.encode() if isinstance(value, str) else value).hex()


def scalars():
    uuid1 = bytes.fromhex("f81d4fae7dec11d0a76500a0c91e6bf6")
    uuid4 = bytes.fromhex("00000000a5cc4372a56702000e02b2c3")
    oid = bytes.fromhex("507f1f77bcf86cd799439011")
    yield ("null",), b"\0"
    yield ("bool", "false"), b"\x26"
    yield ("bool", "true"), b"\x27"
    for text in ("", "Ada", "a\0b", "é€😀"):
        yield ("text", hexed(text)), t_text(text)
    for raw in (b"", b"\0\xff\x01", b"binary"):
        yield ("bytes", hexed(raw)), t_bytes(raw)
    for n in (0, 1, -1, 255, 256, -256, 1815, 2**31, 2**63 - 1, -2**63):
        yield ("int64", str(n)), t_int(n)
    for d in (0.0, -0.0, 0.1, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")):
        yield ("double", struct.pack(">d", d).hex()), t_double(d)
    for f in (0.0, -1.5, float("inf")):
        yield ("float", struct.pack(">f", f).hex()), t_float(f)
    for text, d in (("1.10", 1.1), ("1e2", 100.0), ("-0", -0.0), ("1E400", 1.7976931348623157e308)):
        yield ("number", struct.pack(">d", d).hex(), hexed(text)), nested(t_double(d), t_text(text))
    yield ("uuid", uuid4.hex()), b"\x30" + uuid4
    yield ("array",), nested()
    yield ("object",), nested(nested())
    for n in (0, 5, -5, 2**31 - 1, -2**31):
        yield ("int32", str(n)), tagged(1, t_int(n))
    for n in (0, 2**15 - 1, -2**15):
        yield ("int16", str(n)), tagged(2, t_int(n))
    for n in (0, 127, -128):
        yield ("int8", str(n)), tagged(3, t_int(n))
    for n in (0, 5, -5, 2**63 - 1, -2**63):
        yield ("integer", magnitude(n)), tagged(4, t_int(n))
    for n in (2**63, -2**63 - 1, 2**64, 2**2040 - 1, -2**2040 + 1):
        yield ("integer", magnitude(n)), t_int(n)
    for n in (2**2040, -2**2040):
        raw = abs(n).to_bytes(256, "big")
        yield ("integer", magnitude(n)), tagged(4, b"\x27" if n < 0 else b"\x26", t_bytes(raw))
    for text in ("0", "1.10", "-1E+6144", "1E-6176", "NaN", "inf"):
        fields, _ = decimal128(text)
        yield fields, tagged(5, t_bytes(bytes.fromhex(fields[1])))
    for n, scale in ((110, 2), (-5, -3), (0, 4), (2**100, 2**31 - 1)):
        yield ("decimal", str(scale), magnitude(n)), tagged(6, t_int(scale), t_int(n))
    raw = (2**2040).to_bytes(256, "big")
    yield ("decimal", "3", "-" + raw.hex()), tagged(6, t_int(3), b"\x27", t_bytes(raw))
    yield ("binary", "4", uuid4.hex()), tagged(7, t_int(4), t_bytes(uuid4))
    yield ("binary", "128", ""), tagged(7, t_int(128), t_bytes(b""))
    for n in (0, 1700000000000, -1):
        yield ("date", str(n)), tagged(8, t_int(n))
    for n in (0, 19000, -1):
        yield ("day", str(n)), tagged(9, t_int(n))
    for n in (0, 86399999999999):
        yield ("time", str(n)), tagged(10, t_int(n))
    yield ("duration", "1", "2", "3"), tagged(11, t_int(1), t_int(2), t_int(3))
    yield ("duration", "-14", "0", "-1"), tagged(11, t_int(-14), t_int(0), t_int(-1))
    yield ("timeuuid", uuid1.hex()), tagged(12, b"\x30" + uuid1)
    yield ("object_id", oid.hex()), tagged(13, t_bytes(oid))
    for n in (0, 2**32 + 1, 2**64 - 1):
        yield ("timestamp", str(n)), tagged(14, t_int(n))
    yield ("regex", hexed("^a.*"), hexed("i")), tagged(15, t_text("^a.*"), t_text("i"))
    yield ("code", hexed("return 1")), tagged(16, t_text("return 1"))
    scope = bytes.fromhex("0500000000")
    yield ("code_scope", hexed("x"), scope.hex()), tagged(17, t_text("x"), t_bytes(scope))
    yield ("symbol", hexed("s")), tagged(18, t_text("s"))
    yield ("db_pointer", hexed("a.b"), oid.hex()), tagged(19, t_text("a.b"), t_bytes(oid))
    yield ("undefined",), tagged(20)
    yield ("min_key",), tagged(21)
    yield ("max_key",), tagged(22)
    yield ("inet", "7f000001"), tagged(23, t_bytes(bytes.fromhex("7f000001")))
    yield ("inet", "00" * 15 + "01"), tagged(23, t_bytes(bytes(15) + b"\1"))


def scalars_text():
    lines = ["# Scalars and the values of their leaves: README.md. Made by make.py."]
    lines += ["\t".join((*fields, made.hex())) for fields, made in scalars()]
    return "\n".join(lines) + "\n"


def main():
    failed = False
    texts = {"numbers.txt": numbers_text(), "scalars.txt": scalars_text()}
    if "--check" in sys.argv:
        print(f"1..{len(texts)}")
    for number, (name, text) in enumerate(texts.items(), 1):
        if "--check" not in sys.argv:
            (HERE / name).write_text(text, encoding="ascii")
            continue
        same = (HERE / name).read_text(encoding="ascii") == text
        failed |= not same
        print(f"{'ok' if same else 'not ok'} {number} - {name} is what make.py writes")
    return failed


if __name__ == "__main__":
    sys.exit(main())
