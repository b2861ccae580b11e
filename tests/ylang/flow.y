//--- for without parts
_probe _oneshot { int i = 0; for (;;) { if (i++ == 3) break; } _print(i); }
//= 4
//--- continue goes to the step
_probe _oneshot { int s = 0; for (int i = 0; i < 10; i++) { if (i % 2) continue; s += i; } _print(s); }
//= 20
//--- break leaves the inner loop alone
_probe _oneshot { int n = 0; for (int a = 0; a < 3; a++) for (int b = 0; b < 3; b++) { if (b == a) break; n++; } _print(n); }
//= 3
//--- while and do
_probe _oneshot { int i = 0; int j = 0; while (i < 5) i += 2; do j++; while (j < 0); _print(i, j); }
//= 6 1
//--- a switch falls through
_probe _oneshot { int n = 0; for (int i = 0; i < 5; i++) switch (i) { case 1: n += 1; case 2: n += 10; break; case 4: n += 100; break; default: n += 1000; } _print(n); }
//= 2121
//--- a switch of negative and of large numbers
_probe _oneshot { for (int i = 0; i < 2; i++) switch (i ? 4294967296 : -1) { case -1: _print("minus"); break; case 4294967296: _print("large"); } }
//= minus
//= large
//--- a switch without its case
_probe _oneshot { switch (7) { case 1: _print(1); } _print("behind"); }
//= behind
//--- continue in a switch is the loop's
_probe _oneshot { int n = 0; for (int i = 0; i < 4; i++) { switch (i) { case 2: continue; } n += i; } _print(n); }
//= 4
//--- blocks have variables of their own
_probe _oneshot { int i = 1; { int i = 2; { int i = 3; _print(i); } _print(i); } _print(i); }
//= 3
//= 2
//= 1
//--- else belongs to the nearest if
_probe _oneshot { if (1) if (0) _print("a"); else _print("b"); _print("c"); }
//= b
//= c
//--- return ends a handler
_probe _oneshot { if (list) { _print("before"); return; } _print("never"); }
//= before
//--- arrays of the program
_probe _oneshot { long a[5]; for (int i = 0; i < 5; i++) a[i] = i * i; long s = 0; for (int i = 0; i < 5; i++) s += a[i]; a[2] += 7; a[2]++; _print(s, a[2], a[4]); }
//= 30 12 16
//--- the fallback of the fallback
_probe _oneshot { _print(torn.next->value ?? torn.next->next->value ?? 9, list->value ?? 0); }
//= 9 10
//--- an argument of _print that fails prints its error
_probe _oneshot { _try { _print(_valid(torn.next->value + 1), _len(_str(torn.name)) + 1); } _catch { _print("caught", _status == _FAULT); } }
//= 0 <fault 0x20>
//--- a division in a condition is caught
_probe _oneshot { int zero = counts[0] - 3; _try { if (1 / zero) _print("no"); } _catch { _print("caught", _status == _DIV, _at); } }
//= caught 1 0
//--- a try in a try
_probe _oneshot { _try { _try { int x = torn.next->value; } _catch { _print("inner"); int y = 1 / (counts[0] - 3); } } _catch { _print("outer", _status == _DIV); } }
//= inner
//= outer 1
//--- an index beyond an array of the program
_probe _oneshot { int a[3]; int i = 3; _try { a[i] = 1; } _catch { _print(_status == _LIMIT); } i = -1; _print(a[i] ?? -5); }
//= 1
//= -5
//--- members without names, arrays in structures
_probe _oneshot { _print(inner.low, inner.high, inner.bytes[0], inner.word == 0x01020304, inner.grid[1][2], inner.grid[0][0]); }
//= 772 258 4 1 6 1
//--- bit-fields
_probe _oneshot { _print(bits.a, bits.b, bits.c == 0xabcdef0123, bits.d, bits.e, bits.a + bits.b); }
//= 5 -7 1 1 -200 -2
//--- offsets and containers
_probe _oneshot { _print(offsetof(struct node, value), offsetof(struct inner, grid[1]), _container_of(&second.value, struct node, value) == &second); }
//= 8 20 1
