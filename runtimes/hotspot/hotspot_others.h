/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java that is not HotSpot, recognised so that it is refused by name.
 *
 * Eclipse OpenJ9: its VM is libj9vm29.so (the number is that of its release); its libjvm.so only redirects to it and
 * exports no vmStructs. Images that GraalVM's native-image compiled ahead of time: a program or library with the
 * section .svm_heap (SubstrateVM, NativeImage.java; seen in google-closure-compiler-linux 20261015, made by GraalVM 25,
 * which has no symbols but the section).
 */
#ifndef YRT_HOTSPOT_OTHERS_H
#define YRT_HOTSPOT_OTHERS_H

#include "error.h"
#include "binary/image.h"

/* NULL if the file is none of these; else what it is, and why its Java frames are left out. */
struct error *hotspot_refuse_other(struct image *img);

#endif
