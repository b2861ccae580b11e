//--- reading
_probe _oneshot { _str s = _str(text), t = _str(text, 5); _print(s, t, _len(s), _len(t), s[0], t[4], s[-1] ?? 0, t == "hello"); }
//= hello, world hello 12 5 104 111 0 1
//--- hostile bytes
_probe _oneshot { printf("%s|%.3s|%10s|%-4s|\n", hostile, hostile, text, "é"); _print(hostile); }
//= a�[31m�b�éz|a�[|hello, world|é   |
//= a�[31m�b�éz
//--- without an end
_probe _oneshot { _print(_str(unended, 8), _str(unended, sizeof(unended))); printf("%.8s %.*s\n", unended, 3, unended); }
//= unended! unended!
//= unended! une
//--- joining and comparing
_probe _oneshot { _str a = "abc"; a = _cat(a, "-", text_of(1)); _print(a, "abc" < "abd", "ab" < "abc", "b" > "a", "" == "", "a\0b" == "a"); _print(_len("a\0b")); }
_str text_of(int n) { return n ? "one" : "none"; }
//x d
//= abc-one 1 1 1 1 0
//= 3
//--- regex
_probe _oneshot { _str s = "GET /a/b?x=1 HTTP/1.1"; if (s ~~ rx/^(\w+) ([^ ?]+)(?:\?(\S*))? HTTP\/(\d)\.(\d)$/) _print($1, $2, $3, $4, $5); _print(s !~~ rx/POST/, s ~~ rx/get/i, s ~~ rx/b(\?|x)+?/, $0); }
//x d
//= GET /a/b x=1 1 1
//= 1 1 1 b?
//--- regex: what may only begin later
_probe _oneshot { _print(" ab " ~~ rx/\bab\b/, $0, "xb" ~~ rx/\bb/, "  x" ~~ rx/\b\d*$/); }
//x d
//= 1 ab 0 1
//--- in linear time
_probe _oneshot { _str s = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; s = _cat(s, s, s, s); _print(s ~~ rx/^(a?a?a?a?a?a?a?a?a?a?)*b$/, s ~~ rx/^(?:a*)*$/); }
//x d
//= 0 1
//--- a string is no pointer
_probe _oneshot { _str s = text; }
//! _str(p) reads it
//--- nor a pointer a string
_probe _oneshot { _print(text == "hello"); }
//! _str(p) reads a string
//--- globals of strings
_str last = "none";
_probe _begin { _print(last); last = _str(words[0]); }
_probe _oneshot { _print(last); last = _cat(last, "!"); }
_probe _end { _print(last); }
//x d
//= none
//= alpha
//= alpha!
