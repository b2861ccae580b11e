// SPDX-License-Identifier: Apache-2.0
// Redis 6 and 7: keys by database, type and encoding, with their elements, and the keys that have most
//
// Needs Redis's debug information. Reads each key and the head of its value: for 100,000 keys a few MB, which Redis does
// not notice; KEYS or SCAN with MEMORY USAGE would run in its one thread. An element of a string is a byte.

#ifndef TOP
#define TOP 10
#endif

/* hiredis, which Redis links, has structures of the names dict and dictEntry, too: these are read as words. */
#define WORD(p, n) (((unsigned long *)(p))[n])
##ifdeffield struct redisCommand fullname
#define TABLE(db, i) WORD(server.db[db].dict, 1 + (i))
#define SIZE(db, i)  (server.db[db].dict->ht_size_exp[i] < 0 ? 0UL : 1UL << server.db[db].dict->ht_size_exp[i])
#define ENTRIES(p)   ((long)(WORD(p, 3) + WORD(p, 4)))
##else
#define TABLE(db, i) WORD(server.db[db].dict, 2 + 4 * (i))
#define SIZE(db, i)  WORD(server.db[db].dict, 3 + 4 * (i))
#define ENTRIES(p)   ((long)(WORD(p, 5) + WORD(p, 9)))
##endif

_agg elements[int, _str, _str];
_map long expires[int];
_map long most[int, _str];

_str type_of(int type)
{
	switch (type) {
	case 0: return "string";
	case 1: return "list";
	case 2: return "set";
	case 3: return "zset";
	case 4: return "hash";
	case 5: return "module";
	case 6: return "stream";
	}
	return "unknown";
}

_str encoding_of(int encoding)
{
	switch (encoding) {
	case 0: return "raw";
	case 1: return "int";
	case 2: return "hashtable";
	case 5: return "ziplist";
	case 6: return "intset";
	case 7: return "skiplist";
	case 8: return "embstr";
	case 9: return "quicklist";
	case 10: return "stream";
	case 11: return "listpack";
	}
	return "unknown";
}

/* sds.h: the length stands before the text, as wide as its last byte says. */
long sds_length(char *s)
{
	switch (s[-1] & 7) {
	case 0: return (unsigned char)s[-1] >> 3;
	case 1: return *(unsigned char *)(s - 3);
	case 2: return *(unsigned short *)(s - 5);
	case 3: return *(unsigned *)(s - 9);
	}
	return *(long *)(s - 17);
}

long elements_of(struct redisObject *o)
{
	long pair = o->type == 3 || o->type == 4 ? 2 : 1;

	switch (o->encoding) {
	case 0: case 8: return sds_length((char *)o->ptr);
	case 1: return 8;
	case 2: return ENTRIES(o->ptr);
	case 5: return *(unsigned short *)((char *)o->ptr + 8) / pair;
	case 6: return ((struct intset *)o->ptr)->length;
	case 7: return ((struct zset *)o->ptr)->zsl->length;
	case 9: return ((struct quicklist *)o->ptr)->count;
	case 10: return ((struct stream *)o->ptr)->length;
	case 11: return *(unsigned short *)((char *)o->ptr + 4) / pair;
	}
	return 0;
}

void count(int db, char *key, struct redisObject *o)
{
	long n = elements_of(o);

	elements[db, type_of(o->type), encoding_of(o->encoding)] <<< n;
	if (n >= 100)
		most[db, _str(key, sds_length(key))] = n;
}

_probe _oneshot {
	for (int db = 0; db < server.dbnum; db++) {
		expires[db] = ENTRIES(server.db[db].expires);
		for (int t = 0; t < 2; t++)
			for (unsigned long i = 0; TABLE(db, t) && i < SIZE(db, t); i++)
				for (unsigned long e = WORD(TABLE(db, t), i); e; e = WORD(e, 2))
					count(db, (char *)WORD(e, 0), (struct redisObject *)WORD(e, 1));
	}
	printf("%3s %-8s %-10s %9s %12s %10s\n", "DB", "TYPE", "ENCODING", "KEYS", "ELEMENTS", "LARGEST");
	_foreach (db, type, encoding : sum _in elements)
		printf("%3ld %-8s %-10s %9ld %12ld %10ld\n", db, type, encoding, _count(elements[db, type, encoding]),
		       sum, _max(elements[db, type, encoding]));
	_foreach (db : n _in expires)
		if (n)
			printf("db%ld: %ld keys expire\n", db, n);
	_foreach (db, key : n _in most, _top TOP)
		printf("%12ld  db%ld %.100s\n", n, db, key);
}
