//--- a failed read is never 0
_probe _oneshot { _print(torn.next->value, torn.value, *(int *)0x10); printf("%6d|%-14s|%s\n", torn.next->value, torn.name, text); }
//= <fault 0x20> 7 <fault 0x10>
//= <fault 0x20>|<fault 0x20>  |hello, world
//--- it ends the handler
_probe _oneshot { _print("before"); int x = torn.next->value; _print("behind"); }
//= before
//? fault at 0x20; it ended the handler
//--- orelse, valid
_probe _oneshot { _print(torn.next->value ?? -1, list->value ?? -1, torn.next->next->value ?? torn.value ?? 5, _valid(list->value)); }
//= -1 10 7 1
//--- try and catch
_probe _oneshot { _try { int x = torn.next->value; _print("no"); } _catch { printf("%d 0x%lx %d\n", _status == _FAULT, _at, _status == _DIV); } _print("on"); }
//= 1 0x20 0
//= on
//--- from a function
int value(struct node *n) { return n->value; }
_probe _oneshot { _print(value(list), value(torn.next) ?? -1, value(torn.next)); }
//= 10 -1 <fault 0x20>
//--- a cyclic list ends
_probe _oneshot { int n = 0; for (struct node *p = &round_a; p; p = p->next) n++; }
//x d
//? limit; it ended the handler
//--- recursion ends
int deep(int n) { return deep(n + 1) + 1; }
_probe _oneshot { _print(deep(0)); }
//x d
//= <limit>
//--- 255 calls deep is allowed
int deep(int n) { return n ? deep(n - 1) + 1 : 0; }
_probe _oneshot { _print(deep(254)); }
//x d
//= 254
//--- arrays of the tracer have bounds
_probe _oneshot { int a[3]; int i = 3; a[2] = 5; _print(a[2], a[0], a[i], a[-1] ?? 9); }
//= 5 0 <limit> 9
//--- wild pointers, lengths of 2^63
_probe _oneshot { _print(*(char *)wild, _str(wild), _str(text, 1L << 62), _str(text, -1), *(long *)~0UL); }
//= <fault 0xdeadbeef000> <fault 0xdeadbeef000> <limit> <limit> <fault 0xffffffffffffffff>
//--- an unmapped end of a list of 100,000
_probe _oneshot { long s = 0; for (struct node *n = many; n; n = n->next) s += n->value; _print(s); }
//x d
//= 4999950000
//--- both sides of a page
_probe _oneshot { int bad = 0; for (int i = 0; i < 2000; i++) bad += *(int *)((char *)&many[i] + 8) != i; _print(bad); }
//x d
//= 0
