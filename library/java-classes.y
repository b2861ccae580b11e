// SPDX-License-Identifier: Apache-2.0
// Java, HotSpot 17 to 24: loaded classes by the class of their loader, and loaders
//
// Needs no debug information: the JVM describes its structures itself (vmStructs). Reads that description once, some
// 2,000 entries, then a word of each class. `jcmd PID VM.classloader_stats` counts the same ones, hidden ones apart.

##ifndefvar gHotSpotVMStructs
#error "no JVM (HotSpot) is in this process"
##endif

_agg classes[_str];
long base, shift, at_class, at_name, at_length, at_body;

/* An entry: the type's name, the field's, the field's type, whether it is static, its offset, its address. */
long find(_str type, _str field, int is_static)
{
	for (char *e = *(char **)&gHotSpotVMStructs; *(char **)e; e += *(long *)&gHotSpotVMStructEntryArrayStride) {
		if (_str(*(char **)(e + 8)) == field && _str(*(char **)e) == type)
			return *(long *)(e + (is_static ? 40 : 32));
	}
	return -1;
}

long need(_str type, _str field, int is_static)
{
	long found = find(type, field, is_static);

	if (found == -1)
		_error(_cat("this JVM does not describe ", type, "::", field));
	return found;
}

/* Of compressed class pointers: of a class of their own, or of Universe. */
long narrow(_str member)
{
	long found = find("CompressedKlassPointers", _cat("_narrow_klass.", member), 1);

	return found != -1 ? found : need("CompressedKlassPointers", member, 1);
}

_str class_name(long class)
{
	long symbol = *(long *)(class + at_name);

	return _str((char *)symbol + at_body, *(unsigned short *)(symbol + at_length));
}

_str loader_name(long handle)
{
	long object = handle ? *(long *)handle : 0;

	if (!object)
		return "(bootstrap)";
	return class_name(base + ((long)*(unsigned *)(object + at_class) << shift));
}

_probe _oneshot {
	long next = need("ClassLoaderData", "_next", 0), loader = need("ClassLoaderData", "_class_loader", 0);
	long first = need("ClassLoaderData", "_klasses", 0), link = need("Klass", "_next_link", 0);
	long data = *(long *)need("ClassLoaderDataGraph", "_head", 1);

	at_name = need("Klass", "_name", 0);
	at_length = need("Symbol", "_length", 0);
	at_body = need("Symbol", "_body[0]", 0);
	at_class = need("oopDesc", "_metadata._compressed_klass", 0);
	base = *(long *)narrow("_base");
	shift = *(int *)narrow("_shift");
	for (; data; data = *(long *)(data + next)) {
		long n = 0;

		for (long class = *(long *)(data + first); class; class = *(long *)(class + link))
			n++;
		classes[loader_name(*(long *)(data + loader)) ?? "(unreadable)"] <<< n;
	}
	printf("%8s %8s  %s\n", "CLASSES", "LOADERS", "CLASS OF THE LOADER");
	_foreach (name : n _in classes, _top 1000)
		printf("%8ld %8ld  %s\n", n, _count(classes[name]), name);
}
