//--- writing to the target
_probe _oneshot { list->value = 3; }
//! this lies in the target, and Y only reads it
//--- incrementing the target
_probe _oneshot { counts[0]++; }
//! this lies in the target, and Y only reads it
//--- calling the target
_probe _oneshot { _print(add(1, 2)); }
//! add is the target's: Y reads the target and calls nothing there
//--- no such member
_probe _oneshot { _print(list->valu); }
//! struct node has no member 'valu' (it has: next, value, name); near names: value; ##ifdeffield would ask
//--- no such name
_probe _oneshot { _print(countz); }
//! near names: counts
//--- no such type
_probe _oneshot { struct nodes *p = 0; }
//! the target has no struct nodes; near names: node
//--- an opaque type
_probe _oneshot { _print(opaque->x); }
//! is only declared in the target's debug information
//--- & of a tracer's variable
_probe _oneshot { int a = 1; _print(&a); }
//! & of what lies in the tracer: only the target has addresses
//--- a struct's body, twice
struct mine { int a; };
struct mine { int b; };
//! struct mine has a body already
//--- a member that nobody knows
struct mine { struct nobody n; };
//! nothing says what is in struct nobody: a member may be a pointer to it
//--- a bit-field that is too wide
struct mine { int a : 33; };
//! 33 bits of a int
//--- a structure that is too large
struct mine { char a[1 << 20][1 << 20]; };
//! elements
//--- the size of an array that nobody knows
struct mine { char a[list->value]; };
//! a constant is needed here
//--- an attribute
struct mine { char a; } __attribute__((aligned(16)));
//! the only attribute that is known here
//--- a structure as a variable
_probe _oneshot { struct node n; }
//! structures stay in the target; use a pointer
//--- goto
_probe _oneshot { goto end; }
//! goto is not supported
//--- pointers to functions
int (*f)(int);
_probe _oneshot { }
//! pointers to functions and to arrays are not supported
//--- incompatible pointers
_probe _oneshot { struct node *p = tree; }
//! a cast would say that it is meant
//--- a stack outside of a probe
_probe _oneshot { _print(_stack); }
//! only a probe in the target's code has a stack
//--- two of them
_probe _oneshot { } _probe _oneshot { }
//! there can be only one
//--- a system header
#include <stdio.h>
_probe _oneshot { }
//! there are no system headers here
//--- a back reference
_probe _oneshot { _print("aa" ~~ rx/(a)\1/); }
//! a back reference: these cannot be matched in linear time
//--- too few values
_probe _oneshot { printf("%d %d\n", 1); }
//! the format takes more values than are given (1)
//--- too many values
_probe _oneshot { printf("%d\n", 1, 2); }
//! the format takes 1 value, more are given
//--- %n
_probe _oneshot { printf("%n", list); }
//! %n writes, and Y writes nowhere
//--- a wrong value
_probe _oneshot { printf("%s\n", 3); }
//! %s needs a string, this is int; %d prints a number
//--- a loop that macros would make
#define A B B B B B B B B B B
#define B C C C C C C C C C C
#define C D D D D D D D D D D
#define D E E E E E E E E E E
#define E F F F F F F F F F F
#define F G G G G G G G G G G
#define G 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
_probe _oneshot { int x = A; }
//! macros expand to more than
//--- through a macro
#define BAD(x) ((x)->nothing)
_probe _oneshot { _print(BAD(list)); }
//! (in the expansion of macro BAD)
//--- nothing runs
int x;
//! the program has no _probe: nothing would run
//--- recursion of types in the program
_probe _oneshot { int f = 3; f(); }
//! no function f
//--- a map of bpftrace
_probe _oneshot { @[1] = 2; }
//! a map has a name, `_map long n[long];`
//--- a map without its type
_map n[_str];
//! a map's value needs a type: 'n' is not one
//--- a key that is no type
_map long n[stack];
//! a map's key needs a type: 'stack' is not one
//--- a type that is none
_probe _oneshot { string s = text; }
//! 'string' stands before a name as a type would, and the target has no such type
//--- a function of C
_probe _oneshot { _print(strcmp(text, "a")); }
//! ; _str(p) or _str(p, n) is a value
//--- a method
_probe _oneshot { _print(list->size()); }
//! nothing of the target is, nor its methods
//--- a name that nobody declared
_probe _oneshot { hits++; }
//! the program's own are declared (long n; _map long n[_str];)
//--- an arrow behind a structure
_probe _oneshot { _print(torn->value); }
//! '->' of struct node, which is no pointer: '.' follows it
//--- an end behind a parenthesis
_probe _oneshot { int x = (
//! an expression is missing at the end of the program
//--- two kinds of a histogram
_agg a; _probe _oneshot { a <<< 1; _hist(a); _lhist(a, 0, 9, 1); }
//! a has other buckets elsewhere
//--- too many steps
_agg a; _probe _oneshot { a <<< 1; _lhist(a, 0, 1000, 1); }
//! _lhist(a, low, high, step) has 1 to 256 steps, here are 1000
//--- points as other tools begin programs with
BEGIN { printf("x\n"); }
//! 1:1: error: a handler begins with _probe: _probe _begin { … }
//--- a tracepoint alone
tracepoint:sched:sched_switch { printf("x\n"); }
//! 1:1: error: a handler begins with _probe: _probe tracepoint:…
//--- a process of DTrace
pid$target::serve:entry { printf("x\n"); }
//! 1:1: error: a handler begins with _probe: _probe NAME { … }, and -p chooses the process
//--- a probe of SystemTap
probe process("a").function("b") { printf("x\n"); }
//! 1:1: error: a handler begins with _probe
//--- a statement alone
printf("x\n");
//! 1:1: error: a statement stands in a handler: _probe _oneshot { printf(… }
//--- a variable of a type that is none
Conn *first;
//! the target has no type Conn
