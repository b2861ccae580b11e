// SPDX-License-Identifier: Apache-2.0
// Redis 6 and 7: its clients with their last command, and the bytes that wait in their buffers, most first
//
// Needs Redis's debug information. Reads a few hundred bytes a client, also where Redis answers nobody: CLIENT LIST needs
// its one thread. AGE is of the last command, in seconds. REPLIES that grow are of a client that does not read.

_map long waiting[unsigned long];

#define CLIENT(n) ((struct client *)(n))

long sds_length(char *s)
{
	if (!s)
		return 0;
	switch (s[-1] & 7) {
	case 0: return (unsigned char)s[-1] >> 3;
	case 1: return *(unsigned char *)(s - 3);
	case 2: return *(unsigned short *)(s - 5);
	case 3: return *(unsigned *)(s - 9);
	}
	return *(long *)(s - 17);
}

_str name_of(struct redisCommand *command)
{
	if (!command)
		return "-";
##ifdeffield struct redisCommand fullname
	return _str(command->fullname);
##else
	return _str(command->name);
##endif
}

_probe _oneshot {
	int n = 0;

	for (struct listNode *i = server.clients->head; i; i = i->next) {
		waiting[(unsigned long)i->value] =
			(long)CLIENT(i->value)->reply_bytes + CLIENT(i->value)->bufpos + sds_length(CLIENT(i->value)->querybuf);
		n++;
	}
	printf("%d clients\n%8s %3s %10s %10s %6s %-18s %s\n", n, "ID", "DB", "QUERY", "REPLIES", "AGE", "COMMAND", "NAME");
	_foreach (c : total _in waiting, _top 50)
		printf("%8lu %3d %10ld %10ld %6ld %-18s %s\n", CLIENT(c)->id, CLIENT(c)->db->id,
		       sds_length(CLIENT(c)->querybuf), (long)CLIENT(c)->reply_bytes + CLIENT(c)->bufpos,
		       (long)(server.unixtime - CLIENT(c)->lastinteraction), name_of(CLIENT(c)->lastcmd),
		       CLIENT(c)->name ? _str((char *)CLIENT(c)->name->ptr) : "");
}
