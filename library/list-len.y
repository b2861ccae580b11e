// SPDX-License-Identifier: Apache-2.0
// the length of a list, and whether it turns back on itself: -D HEAD=list -D TYPE='struct node' -D NEXT=next
//
// HEAD is the first node's address: a variable, or a path to it ('server.clients->head'). Reads each node's link: a
// page of the nodes at most. Of a list that the program changes meanwhile the length is about right.

#ifndef HEAD
#error "which list? -D HEAD=list, a pointer to its first node"
#endif
#ifndef TYPE
#error "of what? -D TYPE='struct node'"
#endif
#ifndef NEXT
#define NEXT next
#endif

_probe _oneshot {
	TYPE *first = HEAD, *mark = first;
	long n = 0, turn = 1;

	for (TYPE *p = first; p; p = p->NEXT) {
		n++;
		if (n > 1 && p == mark) {
			printf("a circle of %ld nodes\n", n - turn / 2);
			_exit();
		}
		if (n == turn) {
			mark = p;
			turn *= 2;
		}
	}
	printf("%ld nodes\n", n);
}
