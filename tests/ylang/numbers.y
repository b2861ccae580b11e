//--- the target's widths
_probe _oneshot { _print(i8, u8, i16, u16); _print(i32, u32); _print(i64, u64); _print(yes); }
//= -128 255 -32768 65535
//= -2147483648 4294967295
//= -9223372036854775808 18446744073709551615
//= 1
//--- promotions and conversions
_probe _oneshot { _print(u8 + 1, i8 - 1, u8 << 8, -u8, ~i8); _print(i32 < u32, -1 < 1u, (char)300, (unsigned char)-1); }
//= 256 -129 65280 -255 127
//= 1 0 44 255
//--- overflow wraps
_probe _oneshot { _print(i32 - 1, i64 - 1, u32 + 1, u64 + 1, -i32, -i64); }
//= 2147483647 9223372036854775807 0 0 -2147483648 -9223372036854775808
//--- the least number by -1
_probe _oneshot { int m = -1; long n = -1; _print(i32 / m, i64 / n, i32 % m, i64 % n); }
//= -2147483648 -9223372036854775808 0 0
//--- division truncates
_probe _oneshot { int a = -7; _print(a / 2, a % 2, 7 / -2, 7 % -2, a >> 1, (unsigned)a >> 28); }
//= -3 -1 -3 1 -4 15
//--- shifts modulo the width
_probe _oneshot { int n = 33; long m = 65; _print(1 << n, 1L << m, i32 >> n, 1u << -1); }
//= 2 2 -1073741824 2147483648
//--- division by zero is an error value
_probe _oneshot { int z = counts[1] - 1; printf("%d\n", 1 / z); _print(1 % z ?? -1, _valid(1 / z)); int x = 1 / z; }
//= <division by zero>
//= -1 0
//? division by zero; it ended the handler
//--- constants
_probe _oneshot { _print(0x10, 010, 0b11, 'a', '\n', '\x41', 0xffffffff, 4294967296, 1u, sizeof(0x80000000), sizeof(1L)); }
//= 16 8 3 97 10 65 4294967295 4294967296 1 4 8
//--- floating point
_probe _oneshot { _print(f32, f64, f32 * 2, f64 + 0.25, f64 < 0, _dtoi(f64), (int)2.9, (unsigned char)300.5); printf("%.3f|%8.2e|%g|%5.1f|\n", f64, 12345.678, 0.1, f32); }
//x d
//= 1.5 -2.25 3 -2 1 -2 2 255
//= -2.250|1.23e+04|0.1|  1.5|
//--- conditions
_probe _oneshot { _print(!0, !5, 1 && 0, 0 || 2, list && list->next, 1 ? 2 : 3, f64 ? 1 : 0, none ? 1 : 0); }
//x d
//= 1 0 0 1 1 2 1 0
//--- short circuits read nothing
_probe _oneshot { struct node *p = (struct node *)0x18; _print(0 && p->value, 1 || p->value, none && none->value); }
//= 0 1 0
//--- assignment operators
_probe _oneshot { int a = 7; a += 3; a -= 1; a *= 4; a /= 5; a %= 5; a <<= 4; a >>= 1; a |= 3; a &= 18; a ^= 5; _print(a, a++, ++a, a--, --a); unsigned char c = 250; c += 10; _print(c); }
//= 23 23 25 25 23
//= 4
//--- comma and sizeof
_probe _oneshot { int a = (1, 2); _print(a, sizeof(int), sizeof(struct node), sizeof(counts), sizeof counts[0], sizeof(*none), sizeof(a + 1L)); }
//= 2 4 24 32 4 24 8
//--- enumerators
_probe _oneshot { _print(RED, GREEN, BLUE, colour, colour == BLUE, below, MINUS < 0, below < 0); }
//= 0 5 6 6 1 -3 1 1
