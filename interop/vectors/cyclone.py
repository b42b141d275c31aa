"""Prints what Cyclone DDS for Python makes of the values below: "type version order kind bytes"."""
from dataclasses import dataclass
from typing import Optional

from cyclonedds.idl import IdlBitmask, IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl._support import Endianness, SerializeKind
from cyclonedds.idl.annotations import appendable, bit_bound, final, key, member_id, mutable, position
from cyclonedds.idl.types import (
    array, bounded_str, case, char, default, float32, float64, int8, int16, int32, int64, sequence, uint8, uint16,
    uint32, uint64,
)


class Color(IdlEnum):
    RED = 0
    GREEN = 1
    BLUE = 2


@bit_bound(8)
class Tiny(IdlEnum):
    TINY_A = 0
    TINY_B = 1


@bit_bound(12)
@dataclass
class Flags(IdlBitmask):
    FLAG0: bool = False
    position("FLAG0", 0)
    FLAG3: bool = False
    position("FLAG3", 3)
    FLAG11: bool = False
    position("FLAG11", 11)


@final
@dataclass
class Inner(IdlStruct):
    a: uint8
    b: float64


@appendable
@dataclass
class Open(IdlStruct):
    a: uint8
    b: uint16


@final
@dataclass
class Primitives(IdlStruct):
    flag: bool
    o: uint8
    i64: int64
    c: char
    f64: float64
    i8: int8
    i16: int16
    u8: uint8
    u16: uint16
    i32: int32
    gap: uint8
    u32: uint32
    f32: float32
    u64: uint64


@final
@dataclass
class Strings(IdlStruct):
    gap: uint8
    plain: str
    bounded: bounded_str[8]
    list: sequence[str]


@final
@dataclass
class Collections(IdlStruct):
    bytes: sequence[uint8]
    shorts: sequence[int16]
    doubles: sequence[float64]
    none: sequence[float64]
    flags: sequence[bool]
    inners: sequence[Inner]
    numbers: array[int32, 3]
    grid: array[array[float64, 2], 2]
    pair: array[Inner, 2]
    bounded: sequence[int32, 4]
    last: uint8


@final
@dataclass
class Enums(IdlStruct):
    gap: uint8
    hue: Color
    hues: sequence[Color]
    both: array[Color, 2]
    last: uint8


@final
class Choice(IdlUnion, discriminator=int32):
    number: case[1, float64]
    text: case[2, str]
    within: case[3, Inner]
    other: default[uint8]


@final
@dataclass
class Unions(IdlStruct):
    gap: uint8
    number: Choice
    text: Choice
    within: Choice
    other: Choice


@final
@dataclass
class Nested(IdlStruct):
    gap: uint8
    within: Inner
    opened: Open
    opens: sequence[Open]
    last: uint8


@appendable
@dataclass
class Top(IdlStruct):
    a: uint8
    b: int64
    opened: Open
    text: str


@final
@dataclass
class Base(IdlStruct):
    id: int32
    key("id")
    x: uint8


@final
@dataclass
class Derived(Base):
    y: float64
    text: str


@final
@dataclass
class KeySmall(IdlStruct):
    a: uint8
    key("a")
    other: str
    b: uint16
    key("b")
    c: int32
    key("c")


@final
@dataclass
class KeyInner(IdlStruct):
    small: KeySmall
    key("small")
    whole: Inner
    key("whole")
    last: uint8


@appendable
@dataclass
class KeyOpen(IdlStruct):
    a: int32
    key("a")
    gap: uint8
    b: uint16
    key("b")


@final
@dataclass
class Narrow(IdlStruct):
    gap: uint8
    small: Tiny
    gap2: uint8
    bits: Flags
    more: sequence[Flags]
    last: uint8


@final
@dataclass
class Optionals(IdlStruct):
    gap: uint8
    yes: Optional[int32]
    no: Optional[int32]
    text: Optional[str]
    last: uint8


@mutable
@dataclass
class Mutable(IdlStruct):
    a: uint8
    member_id("a", 50)
    b: uint16
    member_id("b", 2)
    c: int32
    d: int64
    text: str
    bytes: sequence[uint8]
    shorts: sequence[int16]
    longs: sequence[int32]
    doubles: sequence[float64]
    list: sequence[str]
    within: Inner
    opened: Open
    hue: Color
    numbers: array[int32, 3]
    yes: Optional[int32]
    no: Optional[int32]


@mutable
@dataclass
class KeyMutable(IdlStruct):
    a: uint8
    key("a")
    member_id("a", 9)
    gap: int32
    b: uint16
    key("b")
    member_id("b", 4)


@mutable
@dataclass
class MutableNested(IdlStruct):
    gap: uint8
    within: Mutable
    last: uint8


@appendable
class OpenChoice(IdlUnion, discriminator=uint8):
    number: case[1, int32]
    text: case[7, str]


@final
@dataclass
class OpenUnions(IdlStruct):
    gap: uint8
    number: OpenChoice
    text: OpenChoice


def inner(n):
    return Inner(a=n, b=2.5 * n)


def flags(mask):
    return Flags.from_mask(mask)


def choice(discriminator, value):
    return Choice(discriminator=discriminator, value=value)


OPEN = Open(a=3, b=4)
KEY_SMALL = KeySmall(a=1, other="not key", b=0x0203, c=0x04050607)
MUTABLE = Mutable(
    a=1, b=2, c=3, d=4, text="txt", bytes=[1, 2, 3], shorts=[1, 2], longs=[1, 2, 3], doubles=[0.5], list=["x"],
    within=inner(1), opened=OPEN, hue=Color.GREEN, numbers=[1, 2, 3], yes=6, no=None,
)
VALUES = [
    Primitives(
        flag=True, o=0xFE, i64=-0x0102030405060708, c="Z", f64=1.5, i8=-2, i16=-300, u8=200, u16=60000, i32=-70000,
        gap=7, u32=4000000000, f32=-0.25, u64=0xFEDCBA9876543210,
    ),
    Strings(gap=1, plain="Zürich", bounded="12345678", list=["", "a", "bcd"]),
    Collections(
        bytes=[1, 2, 3], shorts=[-1, 2, -3], doubles=[0.5, -1.0], none=[], flags=[True, False, True],
        inners=[inner(1), inner(2)], numbers=[1, -2, 3], grid=[[1.0, 2.0], [3.0, 4.0]], pair=[inner(3), inner(4)],
        bounded=[9, 8], last=0xAA,
    ),
    Enums(gap=1, hue=Color.BLUE, hues=[Color.RED, Color.GREEN], both=[Color.GREEN, Color.BLUE], last=0xAA),
    Unions(gap=1, number=choice(1, 0.5), text=choice(2, "two"), within=choice(3, inner(1)), other=choice(9, 5)),
    Nested(gap=1, within=inner(1), opened=OPEN, opens=[OPEN, OPEN], last=0xAA),
    Top(a=1, b=-2, opened=OPEN, text="end"),
    Derived(id=7, x=8, y=0.5, text="sub"),
    KEY_SMALL,
    KeyInner(small=KEY_SMALL, whole=inner(1), last=0xAA),
    KeyOpen(a=0x01020304, gap=5, b=0x0607),
    Narrow(gap=1, small=Tiny.TINY_B, gap2=2, bits=flags(0x809), more=[flags(1), flags(8)], last=0xAA),
    Optionals(gap=1, yes=5, no=None, text="opt", last=0xAA),
    MUTABLE,
    KeyMutable(a=1, gap=2, b=0x0304),
    MutableNested(gap=1, within=MUTABLE, last=0xAA),
    OpenUnions(gap=1, number=OpenChoice(discriminator=1, value=77), text=OpenChoice(discriminator=7, value="seven")),
]

for value in VALUES:
    name = type(value).__name__
    for version in (1, 2):
        for order, endianness in (("BE", Endianness.Big), ("LE", Endianness.Little)):
            data = value.__idl__.serialize(value, use_version_2=version == 2, endianness=endianness)
            print(name, version, order, "sample", data.hex())
            if name.startswith("Key") or name == "Derived":
                kind = SerializeKind.KeyDefinitionOrder
                data = value.__idl__.serialize(
                    value, use_version_2=version == 2, endianness=endianness, serialize_kind=kind
                )
                print(name, version, order, "key", data.hex())
