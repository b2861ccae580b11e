/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Haskell's functions. GHC's symbol for the code of one is PACKAGE_Module_name_info or Module_name_info, with
 * a unique name behind it for some, each part z-encoded (compiler/GHC/Utils/Encoding.hs of 9.4: zDecodeString; a "z"
 * or "Z" and what follows stands for a character, so "_" only separates).
 */
#ifndef YRT_GHC_NAMES_H
#define YRT_GHC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "base_GHCziBase_zdwfoldr_info" is "GHC.Base.$wfoldr". False: it is no such symbol, or could be one of C, as it has
 * no module with a dot in it and no escape in the name; or there is no room.
 */
bool ghc_demangle(const char *symbol, char *ret, size_t size);

#endif
