//--- char is signed and promotes
_probe _oneshot { char c = 200; _print(c, c + 1, (unsigned char)c, c == 200, c == -56); }
//= -56 -55 200 0 1
//--- unsigned char wraps
_probe _oneshot { unsigned char c = 255; c++; _print(c, (unsigned char)300, (unsigned char)-1); }
//= 0 44 255
//--- short wraps
_probe _oneshot { short s = 32767; s++; _print(s, (short)65535, (unsigned short)-1); }
//= -32768 -1 65535
//--- int overflow wraps
_probe _oneshot { int i = 2147483647; i++; _print(i, -i, i - 1); }
//= -2147483648 -2147483648 2147483647
//--- long overflow wraps
_probe _oneshot { long l = 9223372036854775807; l++; _print(l, l - 1, -l); }
//= -9223372036854775808 9223372036854775807 -9223372036854775808
//--- unsigned and signed meet
_probe _oneshot { unsigned u = 1; int i = -1; _print(i < u, i + u, (long)i < (long)u); }
//= 0 0 1
//--- unsigned long and int meet
_probe _oneshot { unsigned long u = 1; int i = -1; _print(i < u, i + u, u - 2); }
//= 0 0 18446744073709551615
//--- narrow types meet as int
_probe _oneshot { unsigned char a = 200; unsigned char b = 100; _print(a + b, a - b, b - a, a * b); }
//= 300 100 -100 20000
//--- a literal's type
_probe _oneshot { _print(2147483647 + 1, 2147483648 + 1, 0xffffffff + 1, 0x7fffffff + 1, 4294967295 + 1); }
//= -2147483648 2147483649 0 -2147483648 4294967296
//--- suffixes
_probe _oneshot { _print(1u - 2, 1l - 2, 1ul - 2, 1ull - 2 == 0xffffffffffffffff); }
//= 4294967295 -1 18446744073709551615 1
//--- octal, hexadecimal, binary characters
_probe _oneshot { _print(010, 0x10, 'A', '\n', '\x41', '\101', '\\'); }
//= 8 16 65 10 65 65 92
//--- shifts keep the left type
_probe _oneshot { _print(1 << 31, 1u << 31, 1l << 31, 1 << 32, 1l << 64, -8 >> 1, 0x80000000u >> 31); }
//= -2147483648 2147483648 2147483648 1 1 -4 1
//--- a shift by a negative number
_probe _oneshot { int n = -1; _print(1 << n, 1l << n); }
//= -2147483648 -9223372036854775808
//--- division toward zero
_probe _oneshot { _print(7 / 2, -7 / 2, 7 / -2, -7 / -2, 7 % 2, -7 % 2, 7 % -2, -7 % -2); }
//= 3 -3 -3 3 1 -1 1 -1
//--- the least number by -1
_probe _oneshot { int i = -2147483647 - 1; long l = -9223372036854775807 - 1; int m = -1; _print(i / m, i % m, l / m, l % m); }
//= -2147483648 0 -9223372036854775808 0
//--- unsigned division
_probe _oneshot { unsigned u = 4294967295; unsigned long l = 18446744073709551615u; _print(u / 2, u % 10, l / 3, l % 10); }
//= 2147483647 5 6148914691236517205 5
//--- comparison yields int
_probe _oneshot { _print((1 < 2) + (2 > 1) + (1 == 1) + (1 != 1), sizeof(1 < 2), !5, !0, !!5); }
//= 3 4 0 1 1
//--- logical operators stop early
_probe _oneshot { int n = 0; int r = 0 && ++n; r += 1 || ++n; r += 1 && ++n; _print(r, n); }
//= 2 1
//--- the comma, and nested conditions
_probe _oneshot { int a = 1; int b = (a++, a * 10); _print(a, b, a > 1 ? b > 10 ? 1 : 2 : 3); }
//= 2 20 1
//--- compound assignment converts back
_probe _oneshot { unsigned char c = 250; c += 10; short s = 1; s <<= 15; int i = 7; i %= 4; i |= 8; i ^= 1; i &= ~2; _print(c, s, i); }
//= 4 -32768 8
//--- increments before and behind
_probe _oneshot { int i = 5; int a = i++ + 10; int b = ++i + 10; int c = i-- - 1; int d = --i; _print(a, b, c, d, i); }
//= 15 17 6 5 5
//--- a bool is 0 or 1
_probe _oneshot { bool b = 5; b += 3; _Bool c = 0; _print(b, c, (bool)256, (bool)0.5); }
//x d
//= 1 0 1 1
//--- sizes
_probe _oneshot { _print(sizeof(char), sizeof(short), sizeof(int), sizeof(long), sizeof(void *), sizeof(struct node), sizeof(counts), sizeof inner.grid); }
//= 1 2 4 8 8 24 32 24
//--- precedence
_probe _oneshot { _print(1 + 2 * 3 << 1 & 0xff | 1, 1 | 2 ^ 3 & 4, 10 - 4 - 3, 2 * 3 % 4, -1 < 0 == 1, ~0 & 3); }
//= 15 3 3 2 1 3
//--- casts of pointers
_probe _oneshot { _print((long)(struct node *)8, (unsigned)(long)(void *)0x1ffffffff, (char *)5 - (char *)3); }
//= 8 4294967295 2
//--- pointers step by what they lead to
_probe _oneshot { struct node *n = &first; int *c = counts; _print((char *)(n + 1) - (char *)n, c[1], *(c + 2), &c[5] - &c[2], c + 1 > c); }
//= 24 1 4 3 1
//--- floats print and compare
_probe _oneshot { _print(f32 == 1.5, f64 < 0, f64 == -2.25, f32 > f64); printf("%.2f %g\n", f64, f32); }
//x d
//= 1 1 1 1
//= -2.25 1.5
//--- enumerators
_probe _oneshot { _print(RED, GREEN, BLUE, MINUS, colour == BLUE, below, colour + 1); }
//= 0 5 6 -3 1 -3 7
