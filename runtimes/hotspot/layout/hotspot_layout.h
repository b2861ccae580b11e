/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What yrt must know about a JVM. Most of it comes from the process itself (hotspot_vmstructs.h); the rest comes from
 * debug information, a symbol, or structure and version, and its origin says so.
 *
 * A name is "Type.field", "sizeof Type", or "constant Type::name" of the vmStructs (the value in `at`). A field that
 * moved has several names, "A._f|B._f": the first one that the process knows is used. size is that of the field's type,
 * as far as the process gives it (8 for pointers, 1 if it does not).
 */
#ifndef YRT_HOTSPOT_LAYOUT_H
#define YRT_HOTSPOT_LAYOUT_H

#include "layout/layout.h"
#include "hotspot_vmstructs.h"

#define HOTSPOT_MEMBERS(M, OPTIONAL)                                                                                   \
	M(heap_size, "sizeof CodeHeap")                                                                                \
	M(heap_memory, "CodeHeap._memory")                                                                             \
	M(heap_segmap, "CodeHeap._segmap")                                                                             \
	M(heap_log2_segment, "CodeHeap._log2_segment_size")                                                            \
	M(space_low, "VirtualSpace._low")                                                                              \
	M(space_high, "VirtualSpace._high")                                                                            \
	M(space_low_boundary, "VirtualSpace._low_boundary")                                                            \
	M(space_high_boundary, "VirtualSpace._high_boundary")                                                          \
	M(block_size, "sizeof HeapBlock")                                                                              \
	M(blob_name, "CodeBlob._name")                                                                                 \
	M(blob_size, "CodeBlob._size")                                                                                 \
	M(blob_frame_size, "CodeBlob._frame_size")                                                                     \
	M(blob_frame_complete, "CodeBlob._frame_complete_offset")                                                      \
	M(blob_data_offset, "CodeBlob._data_offset")                                                                   \
	OPTIONAL(blob_kind, "CodeBlob._kind")                 /* 23 */                                                 \
	OPTIONAL(blob_code_begin, "CodeBlob._code_begin")     /* a pointer, 9 to 22 */                                 \
	OPTIONAL(blob_code_offset, "CodeBlob._code_offset")   /* from the blob, 8 and from 23 */                       \
	OPTIONAL(blob_mutable_data, "CodeBlob._mutable_data") /* 25 */                                                 \
	OPTIONAL(blob_mutable_data_size, "CodeBlob._mutable_data_size")                                                \
	OPTIONAL(blob_relocation_size, "CodeBlob._relocation_size")                                                    \
	OPTIONAL(kind_nmethod, "constant CodeBlobKind::Nmethod") /* 23 */                                              \
	OPTIONAL(kind_adapter, "constant CodeBlobKind::Adapter") /* 23 */                                              \
	OPTIONAL(blob_header_size, "CodeBlob._header_size")      /* 8 to 25 */                                         \
	OPTIONAL(nm_size, "sizeof nmethod")                                                                            \
	M(nm_method, "nmethod._method|CompiledMethod._method")                                                         \
	M(nm_compile_id, "nmethod._compile_id")                                                                        \
	M(nm_level, "nmethod._comp_level")                                                                             \
	M(nm_orig_pc_offset, "nmethod._orig_pc_offset")                                                                \
	M(nm_entry_bci, "nmethod._entry_bci")                                                                          \
	OPTIONAL(nm_state, "nmethod._state")                                                                           \
	M(nm_scopes_pcs_offset, "nmethod._scopes_pcs_offset")                                                          \
	OPTIONAL(nm_scopes_data_begin,                                                                                 \
	        "CompiledMethod._scopes_data_begin|nmethod._scopes_data_begin") /* pointer, 9 to 22 */                 \
	OPTIONAL(nm_scopes_data_offset, "nmethod._scopes_data_offset")          /* 8, 23 on */                         \
	OPTIONAL(nm_dependencies_offset, "nmethod._dependencies_offset")        /* 8 to 22: where the PcDescs end */   \
	OPTIONAL(nm_metadata_offset, "nmethod._metadata_offset")                /* 8 to 24; 25 on see mutable_data */  \
	OPTIONAL(nm_immutable_data, "nmethod._immutable_data")                  /* 23 */                               \
	OPTIONAL(nm_immutable_data_size, "nmethod._immutable_data_size")                                               \
	OPTIONAL(nm_deopt_begin, "CompiledMethod._deopt_handler_begin|nmethod._deopt_handler_begin") /* pointer */     \
	OPTIONAL(nm_deopt_offset, "nmethod._deopt_handler_offset|nmethod._deopt_handler_entry_offset|"                 \
	                          "nmethod._deoptimize_offset") /* the last: 8 */                                      \
	OPTIONAL(nm_deopt_mh_begin, "CompiledMethod._deopt_mh_handler_begin|nmethod._deopt_mh_handler_begin")          \
	OPTIONAL(nm_deopt_mh_offset, "nmethod._deopt_mh_handler_offset|nmethod._deoptimize_mh_offset")                 \
	M(pc_desc_size, "sizeof PcDesc")                                                                               \
	M(pc_desc_pc, "PcDesc._pc_offset")                                                                             \
	M(pc_desc_scope, "PcDesc._scope_decode_offset")                                                                \
	M(method_const, "Method._constMethod")                                                                         \
	M(method_code, "Method._code")                                                                                 \
	M(method_access, "Method._access_flags")                                                                       \
	M(const_pool, "ConstMethod._constants")                                                                        \
	M(const_flags, "ConstMethod._flags|ConstMethod._flags._flags")                                                 \
	OPTIONAL(const_has_lines,                                                                                      \
	        "constant ConstMethodFlags::_misc_has_linenumber_table|constant ConstMethod::_has_linenumber_table")   \
	M(const_words, "ConstMethod._constMethod_size")                                                                \
	M(const_code_size, "ConstMethod._code_size")                                                                   \
	M(const_name, "ConstMethod._name_index")                                                                       \
	M(const_signature, "ConstMethod._signature_index")                                                             \
	M(const_size, "sizeof ConstMethod")                                                                            \
	M(pool_holder, "ConstantPool._pool_holder")                                                                    \
	M(pool_size, "sizeof ConstantPool")                                                                            \
	M(pool_length, "ConstantPool._length")                                                                         \
	OPTIONAL(pool_source_file, "ConstantPool._source_file_name_index") /* 16; before: InstanceKlass */             \
	OPTIONAL(klass_source_file, "InstanceKlass._source_file_name_index")                                           \
	M(klass_name, "Klass._name")                                                                                   \
	M(klass_layout_helper, "Klass._layout_helper")                                                                 \
	M(symbol_length, "Symbol._length")                                                                             \
	M(symbol_body, "Symbol._body[0]|Symbol._body")                                                                 \
	M(queue_buffer, "StubQueue._stub_buffer")                                                                      \
	M(queue_limit, "StubQueue._buffer_limit")                                                                      \
	M(tlab, "Thread._tlab")                                                                                        \
	M(tlab_start, "ThreadLocalAllocBuffer._start")                                                                 \
	M(tlab_top, "ThreadLocalAllocBuffer._top")                                                                     \
	M(tlab_end, "ThreadLocalAllocBuffer._end")                                                                     \
	M(allocated_bytes, "Thread._allocated_bytes")                                                                  \
	M(osthread, "Thread._osthread|JavaThread._osthread")                                                           \
	M(os_thread_id, "OSThread._thread_id")                                                                         \
	M(thread_obj, "JavaThread._threadObj")                                                                         \
	OPTIONAL(thread_saved_pc, "JavaThread._saved_exception_pc")                                                    \
	M(thread_anchor, "JavaThread._anchor")                                                                         \
	M(collector_count, "CollectedHeap._total_collections")

/* The layout of a JVM. */
struct hotspot_layout {
#define M(slot, name) struct layout_member slot;
	HOTSPOT_MEMBERS(M, M)
#undef M
};

extern const struct layout_schema hotspot_layout_schema;

/* The layout of a process, by what it says of itself. Its values are a struct hotspot_layout. Says what is missing. */
struct error *hotspot_layout_find(const struct vmstructs *v, struct layout **ret);

#endif
