/* SPDX-License-Identifier: Apache-2.0 */
/* Types whose layout test_layout_dwarf.c knows from the compiler and reads from the DWARF of a file that includes this.
 */
#ifndef LAYOUT_TYPES_H
#define LAYOUT_TYPES_H

struct plain {
	char c;
	short s;
	int i;
	long l;
	void *p;
};

typedef struct {
	int first;
	struct plain inner;
	union {
		int number;
		double real;
		struct {
			char deep;
			const volatile struct plain *link;
		};
	};
	int array[3][5];
	struct plain plains[2];
	unsigned bit : 3;
	unsigned wide : 29;
	char tail[];
} tricky;

typedef const tricky alias;
typedef alias alias_of_alias;

union either {
	char bytes[24];
	struct {
		int a, b;
	} pair;
};

struct large {
	char bytes[70000];
	int behind;
};

struct declared;

enum colour { COLOUR_RED, COLOUR_GREEN, COLOUR_BLUE = 5, COLOUR_AZURE = 5, OTHER_WORD = 6, COLOUR__MAX = 7 };
typedef enum { OP_ADD, OP_SUB, OP_MUL, OP__MAX } op;

#endif
