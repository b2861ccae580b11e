//--- a missing key reads 0
_map int m[int];
_probe _oneshot { _print(m[5], 5 _in m); m[5] = 0; _print(m[5], 5 _in m); _delete(m[5]); _print(5 _in m); }
//x d
//= 0 0
//= 0 1
//= 0
//--- counting, in order of keys
_map long n[_str];
_probe _oneshot { for (int i = 0; i < 6; i++) n[_str(words[i])]++; _foreach (w : k _in n) _print(w, k); _print(n); }
//x d
//= alpha 2
//= beta 3
//= gamma 1
//= n
//= alpha  2
//= beta   3
//= gamma  1
//--- the largest first
_map long n[_str];
_probe _oneshot { for (int i = 0; i < 6; i++) n[_str(words[i])]++; _foreach (w : k _in n, _top 2) _print(w, k); }
//x d
//= beta 3
//= alpha 2
//--- keys of numbers ascend by value
_map int m[int, _str];
_probe _oneshot { m[-1, "b"] = 1; m[10, "a"] = 2; m[2, "z"] = 3; m[-1, "a"] = 4; _foreach (k, s : v _in m) _print(k, s, v); m[2, "z"] += 5; m[2, "z"]--; _print(m[2, "z"], (2, "z") _in m); }
//x d
//= -1 a 4
//= -1 b 1
//= 2 z 3
//= 10 a 2
//= 7 1
//--- values of strings
_map _str names[long];
_probe _oneshot { for (struct node *p = list; p; p = p->next) names[p->value] = _str(p->name); _print(names[20], names[21] == ""); _print(names); }
//x d
//= two 1
//= names
//= 10     one
//= 20     two
//= 30     three
//--- a full map loses
_map(2) int m[int];
_probe _oneshot { for (int i = 0; i < 5; i++) m[i] = i; _print(m[1], m[4]); }
//x d
//= 1 0
//--- aggregates
_agg a[_str];
_agg all;
_probe _oneshot { for (int i = 0; i < 6; i++) { a[_str(words[i])] <<< counts[i]; all <<< counts[i] - 4; } _print(_count(a["beta"]), _sum(a["beta"]), _min(a["beta"]), _max(a["beta"]), _avg(a["beta"]), _count(a["none"])); _print(a); _hist(all); }
//x d
//= 3 11 1 9 3 0
//= a            count          sum          min          max          avg
//= beta             3           11            1            9            3
//= alpha            2            8            3            5            4
//= gamma            1            4            4            4            4
//= all
//= (..., 0)                          3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//= [0]                               1 |@@@@@@@@@@@@@                           |
//= [1]                               1 |@@@@@@@@@@@@@                           |
//= [2, 4)                            0 |                                        |
//= [4, 8)                            1 |@@@@@@@@@@@@@                           |
//--- changing a map in its own loop
_map int m[int];
_probe _oneshot { for (int i = 0; i < 100; i++) m[i] = i; int n = 0; _foreach (k : v _in m) { _delete(m[k]); m[k + 1000] = v; n += v; } _print(n, m[1099], 99 _in m); _clear(m); _print(1099 _in m); }
//x d
//= 4950 99 0
//= 0
//--- arrays of the program
int seen[4];
_probe _oneshot { for (int i = 0; i < 8; i++) seen[counts[i] % 4]++; _print(seen[0], seen[1], seen[2], seen[3], seen[4]); }
//= 1 4 2 1 <limit>
//--- adding to elements of arrays
long a[3]; unsigned char small[2]; short s[2]; unsigned u[1];
int at(void) { a[2] += 100; return 1; }
_probe _oneshot {
	small[1] = 250;
	for (int i = 0; i < 10; i++) {
		a[i % 2]++;
		small[1] += 3;
		s[1] -= 7000;
		--u[0];
	}
	_print(a[0]++, ++a[0], a[0]--, --a[0], a[1], small[1], small[1]++, s[1], u[0]);
	a[at()] += 5;
	_print(a[1], a[2], small[1] - 25, small[0]);
	_print(a[1] += small[1], (s[0] += 40000), u[0] += 11);
	_print((a[7]++) ?? -1, (a[-1] += 1) ?? -2, _valid(a[3]--));
}
//= 5 7 7 5 5 24 24 -4464 4294967286
//= 10 100 0 0
//= 35 -25536 1
//= -1 -2 0
//--- adding to truth
_Bool b, c[2];
_probe _oneshot { b++; b++; c[1] += 5; c[1]++; b += -2; _print(b, c[0], c[1]); }
//= 1 0 1
//--- a histogram by equal steps
_agg by[int];
_agg all;
_probe _oneshot {
	for (int i = -3; i < 12; i++) {
		by[i < 5] <<< i;
		all <<< i * 1000000000000;
	}
	_lhist(by, 0, 9, 2);
	_lhist(all, -1000000000000, 1000000000000, 1000000000000);
}
//x d
//= by[0]
//= [4, 6)                            1 |@@@@@@@@@@@@@@@@@@@@                    |
//= [6, 8)                            2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//= [8, 10)                           2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//= [10, ...)                         2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//= by[1]
//= (..., 0)                          3 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//= [0, 2)                            2 |@@@@@@@@@@@@@@@@@@@@@@@@@@              |
//= [2, 4)                            2 |@@@@@@@@@@@@@@@@@@@@@@@@@@              |
//= [4, 6)                            1 |@@@@@@@@@@@@@                           |
//= all
//= (..., -1000000000000)             2 |@@@@@@@                                 |
//= [-1000000000000, 0)               1 |@@@                                     |
//= [0, 1000000000000)                1 |@@@                                     |
//= [1000000000000, ...)             11 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
