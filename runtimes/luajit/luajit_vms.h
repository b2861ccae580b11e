/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VMs of a process, found from outside. A VM is one GG_State (lj_dispatch.h): main thread, global_State, jit_State,
 * and the dispatch table, 2,000 bytes of pointers into the VM's code (GG_LEN_DISP: 239 to 250 of them in the builds of
 * 2017 to 2026). yrt searches for that table in all writable memory without a file behind it and in the data of
 * modules, because hosts have their own allocators. The memory around it must then be a VM.
 *
 * A closed VM is not taken for one, even if its memory is still there: after lua_close() only GG_State itself counts as
 * in use (lj_state.c, close_state).
 */
#ifndef YRT_LUAJIT_VMS_H
#define YRT_LUAJIT_VMS_H

#include "luajit_image.h"
#include "runtime.h"

/* 0.2 s a GiB of memory in use, 0.7 s a TiB of reserved addresses, on the machine of README.md's figures. */
#define LUAJIT_VMS_MEMORY (16ull << 30)
#define LUAJIT_VMS_SPAN   (2ull << 40)

struct luajit_vms {
	u64 *g; /* addresses of global_States, ascending */
	u32 n;
	u64 searched; /* bytes of memory in use that were looked through */
	u64 left;     /* bytes of mappings that were not, because of the limits: the largest mappings */
};

/* memory: bytes in use to look through at most. Free ret->g with free(). */
struct error *luajit_vms_find(const struct luajit_image *image, u64 bias, const struct runtime_process *p, u64 memory,
        struct luajit_vms *ret);

/* Is there a VM whose global_State is at g? code: the VM's code in the process. */
bool luajit_vms_is_vm(const struct luajit_image *image, u64 bias, struct memory *memory, u64 g);

/* Memory that a VM writes machine code of traces to; it is not executable while one is written. */
struct luajit_area {
	u64 start, end;
};

/*
 * The areas of a VM, the one in use first; their number, at most max. Each begins with its link: the next area, and its
 * own size (struct MCLink, lj_mcode.c, the same in all of 2.1).
 */
u32 luajit_vms_areas(const struct luajit_image *image, struct memory *memory, u64 g, struct luajit_area *ret, u32 max);

/* A member of a structure at address; 0 if it can not be read. Sizes of 1, 2, 4 and 8 bytes. */
u64 luajit_vms_read(struct memory *memory, u64 address, struct layout_member member);

#endif
