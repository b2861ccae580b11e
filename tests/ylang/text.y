//--- formats of numbers
_probe _oneshot { printf("%d|%5d|%-5d|%05d|%+d|% d|%x|%#x|%X|%o|%u\n", 42, 42, 42, 42, 42, 42, 255, 255, 255, 8, 42); }
//= 42|   42|42   |00042|+42| 42|ff|0xff|FF|10|42
//--- widths and precisions that are values
_probe _oneshot { printf("[%*d][%-*d][%.*s][%.2s][%6.3s]\n", 5, 42, 5, 42, 3, "abcdef", "xyz", "pqrst"); }
//= [   42][42   ][abc][xy][   pqr]
//--- a number prints with its own width
_probe _oneshot { printf("%ld %d %u %lu %hhd\n", i8, i64, u8, u32, i16); }
//= -128 -9223372036854775808 255 4294967295 0
//--- characters and percent
_probe _oneshot { printf("%c%c%c %%\n", 'a', 98, words[2][0]); }
//= abg %
//--- strings compare by bytes
_probe _oneshot { _str a = "abc"; _print(a == "abc", a < "abd", a < "abcd", "" < a, a != "ABC", "b" > a); }
//= 1 1 1 1 1 1
//--- a string's bytes
_probe _oneshot { _str s = "hey"; int sum = 0; for (int i = 0; i < _len(s); i++) sum += s[i]; _print(sum, s[0], _len(""), s[9] ?? -1); }
//x d
//= 326 104 0 -1
//--- strings join
_probe _oneshot { _str s = ""; for (int i = 0; i < 3; i++) s = _cat(s, _str(words[i]), i < 2 ? "," : "."); _print(s, _len(s)); }
//= alpha,beta,gamma. 17
//--- so many bytes of the target
_probe _oneshot { _print(_str(text, 5), _len(_str(text, 0)), _str(text + 7), _str(unended, 8)); }
//= hello 0 world unended!
//--- hostile bytes are made safe
_probe _oneshot { printf("%s|\n", hostile); }
//= a�[31m�b�éz|
//--- an unreadable string in a format
_probe _oneshot { printf("<%s> <%d>\n", torn.name, torn.next->value); }
//= <<fault 0x20>> <<fault 0x20>>
//--- %p
_probe _oneshot { printf("%p %p\n", (void *)0, (void *)0xbeef); }
//= (nil) 0xbeef
