// SPDX-License-Identifier: Apache-2.0
// glibc: open streams of stdio, with what they hold that was not written yet or was read ahead
//
// Needs libc6-dbg. Reads a structure a stream. A program that dies loses what is unwritten; a log that lags is here.

_probe _oneshot {
	printf("%4s %10s %10s %10s  %s\n", "FD", "UNWRITTEN", "UNREAD", "BUFFER", "STATE");
	for (struct _IO_FILE *f = (struct _IO_FILE *)libc`_IO_list_all; f; f = f->_chain) {
		long unwritten = f->_IO_write_ptr - f->_IO_write_base, unread = f->_IO_read_end - f->_IO_read_ptr;

		printf("%4d %10ld %10ld %10ld  %s%s%s\n", f->_fileno, unwritten > 0 ? unwritten : 0, unread > 0 ? unread : 0,
		       f->_IO_buf_end - f->_IO_buf_base, f->_flags & 2 ? "unbuffered " : f->_flags & 0x200 ? "lines " : "",
		       f->_flags & 0x10 ? "at its end " : "", f->_flags & 0x20 ? "failed" : "");
	}
}
