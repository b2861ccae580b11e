/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* All runtimes, a line each: RUNTIME(enum runtime_id, folder). No include guard: each user gives RUNTIME a meaning. */
RUNTIME(RUNTIME_LUAJIT, luajit)
RUNTIME(RUNTIME_PYTHON, python)
RUNTIME(RUNTIME_HOTSPOT, hotspot)
