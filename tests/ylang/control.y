//--- loops
_probe _oneshot { int n = 0; while (n < 3) n++; do n += 10; while (n < 20); for (int i = 0; i < 10; i++) { if (i == 2) continue; if (i == 5) break; n += 100; } _print(n); }
//= 423
//--- switch
_str kind(int n) { switch (n) { case 1: return "one"; case 2: case 3: return "few"; default: return "many"; case -1: break; } return "minus"; }
_probe _oneshot { _print(kind(1), kind(2), kind(3), kind(9), kind(-1)); int x = 0; switch (2) { case 2: x++; case 3: x++; break; case 4: x = 9; } _print(x); }
//= one few few many minus
//= 2
//--- functions before and behind
int twice(int n);
int four(int n) { return twice(twice(n)); }
int twice(int n) { return 2 * n; }
_probe _oneshot { _print(four(3)); }
//= 12
//--- predicates
_probe _oneshot / counts[0] == 3 && (8 / 2 == 4) / { _print("yes"); }
_probe _begin / hidden == 1 / { _print("no"); }
//x d
//= yes
//--- exit
_probe _begin { _print("begin"); _exit(); }
_probe _oneshot { _print("never"); }
_probe _end { _print("end"); }
//= begin
//= end
//--- warnings
_probe _oneshot { _warn("careful"); _print("on"); }
//= on
//? 1:19: warning: careful
//--- macros
#define SQUARE(x) ((x) * (x))
#define NAME(a, b) a##b
#define TEXT(x) #x
#define LIST(f, ...) f(__VA_ARGS__)
#define MANY 3
#if defined(MANY) && MANY > 2 && !defined NONE
#define OK 1
#else
#define OK 0
#endif
_probe _oneshot { _print(SQUARE(MANY + 1), NAME(hid, den), TEXT(a + "b"), LIST(SQUARE, 5), OK, __LINE__); }
//= 16 77 a + "b" 25 1 11
//--- printf
_probe _oneshot { printf("%d|%5d|%-5d|%05d|%+d|% d|%x|%#X|%o|%c|%%|%hhd|%hu|%ld|%p|%p\n", 42, 42, 42, 42, 42, 42, 255, 255, 8, 'A', 511, 65537, i64, list == 0 ? list : 0, 0x10UL); printf("%*d|%-*d|%.3d|%8.3d|%08.3d|%u|%x|%lu\n", 4, 7, 4, 7, 7, 7, 7, -1, -1, u64); }
//= 42|   42|42   |00042|+42| 42|ff|0XFF|10|A|%|-1|1|-9223372036854775808|(nil)|0x10
//=    7|7   |007|     007|     007|4294967295|ffffffff|18446744073709551615
