// SPDX-License-Identifier: Apache-2.0
// CPython 3.10 to 3.12: objects that the garbage collector tracks, by type, of all generations
//
// Works without debug information. Takes the main interpreter; -D 'INTERPRETER=_python(1)' another one. Walks the
// collector's lists: some 20 bytes of each object, its page at most. What is not tracked (numbers, strings) is not
// counted; gc.get_objects() counts the same ones.

#ifndef INTERPRETER
#define INTERPRETER _python
#endif

_map long count_of[PyTypeObject *];

_probe _oneshot {
	PyInterpreterState *interpreter = INTERPRETER;
	long total = 0;

	for (int i = 0; i < 3; i++) {
		PyGC_Head *head = &interpreter->gc.generations[i].head;

		for (PyGC_Head *g = (PyGC_Head *)head->_gc_next; g != head; g = (PyGC_Head *)(g->_gc_next & ~3UL)) {
			PyObject *object = (PyObject *)(g + 1);

			count_of[object->ob_type]++;
			total++;
		}
	}
	printf("%10s  %s\n", "OBJECTS", "TYPE");
	_foreach (type : n _in count_of, _top 1000)
		printf("%10ld  %s\n", n, type->tp_name);
	printf("%10ld  in all\n", total);
}
