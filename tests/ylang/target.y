//--- members, arrays, unions
_probe _oneshot { _print(inner.word, inner.bytes[0], inner.low, inner.high, inner.c, inner.grid[1][2]); }
//= 16909060 4 772 258 120 6
//--- bit-fields
_probe _oneshot { _print(bits.a, bits.b, bits.c, bits.d, bits.e, bits.b < 0, bits.a - 6 < 0); }
//= 5 -7 737894400291 1 -200 1 1
//--- a list
_probe _oneshot { for (struct node *n = list; n; n = n->next) printf("%d %s\n", n->value, n->name); }
//x d
//= 10 one
//= 20 two
//= 30 three
//--- a tree, by recursion
long sum(tree_t *t) { return t ? t->key + sum(t->left) + sum(t->right) : 0; }
_probe _oneshot { _print(sum(tree)); }
//x d
//= 6
//--- pointers
_probe _oneshot { struct node *p = &second; _print(p - &second, &counts[5] - counts, *(counts + 2), p == first.next, (&root)->key, p > &second, offsetof(struct node, name), _container_of(&p->value, struct node, value)->value); }
//= 0 5 4 1 2 0 16 20
//--- addresses read nothing
_probe _oneshot { struct node *p = (struct node *)0x10; _print(&p->name, &p[2].value, _valid(p->value)); }
//= 0x20 0x48 0
//--- offsetof with a path
_probe _oneshot { _print(offsetof(struct inner, grid[1][1]), offsetof(struct inner, high)); }
//= 24 6
//--- casts
_probe _oneshot { _print(*(unsigned char *)&i32, ((unsigned char *)&i32)[3], *(short *)&u32, (long)list != 0, (_Bool)7); }
//= 0 128 -1 1 1
//--- a static variable
_probe _oneshot { _print(hidden); }
//= 77
//--- functions have addresses
_probe _oneshot { _print(pointer == add, pointer == &add, _sym(pointer), _sym((char *)add + 3)); }
//x d
//= 1 1 add add+0x3
//--- a local may hide a global of the target
_probe _oneshot { int counts = 3; _print(counts); { long counts = 4; _print(counts); } _print(counts); }
//= 3
//= 4
//= 3
//--- a literal's address in the target
_probe _oneshot { const char *p = (const char *)"hello, world"; _print(p == text, _str(&"hello, world")); }
//= 1 hello, world
//--- a module's name
_probe _oneshot { _print(asked`hidden, asked`counts[5]); }
//= 77 9
//--- no such literal
_probe _oneshot { _print(&"nobody has this one"); }
//! no read-only data of the target has this string
//--- directives ask the target
##ifdeftype struct node
#define HAS 1
##else
#define HAS 0
##endif
##ifdeffield struct node nam
#error wrong
##elifdeffield struct node name
#define FIELD 2
##endif
##ifndefvar nobody
##ifdeffunc add
##ifdefvar hidden
#define ALL 3
##endif
##endif
##endif
_probe _oneshot { _print(HAS, FIELD, ALL); }
//= 1 2 3
//--- structures that the program says itself
typedef struct own own_t;
struct own { own_t *next; int number; const char *text; void (*call)(int); char room[4]; };
enum kind { FIRST, TENTH = 10, TWENTIETH = TENTH * 2 };
_probe _oneshot {
	own_t *o = (own_t *)list;

	for (; o; o = o->next)
		printf("%d %s\n", o->number, o->text);
	o = (own_t *)&torn;
	_print(o->number, sizeof(own_t), sizeof(o->room), offsetof(struct own, call), FIRST, TWENTIETH);
	int TENTH = 3;
	_print(TENTH);
}
//x d
//= 10 one
//= 20 two
//= 30 three
//= 7 40 4 24 0 20
//= 3
//--- the program's own types hide the target's
struct node { int first; };
_probe _oneshot { struct node *n = (struct node *)&torn; _print(sizeof(struct node), _valid(n->first)); }
//= 4 1
