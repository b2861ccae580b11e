/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal that is drawn on as a whole and read key by key. */
#ifndef YRT_TERMINAL_H
#define YRT_TERMINAL_H

#include <stdbool.h>

enum terminal_key { /* other keys are characters */
	KEY_NONE = -1,
	KEY_CTRL_Z = 26,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
};

/* Takes stdin and stdout over, until terminal_leave(); at exit that happens by itself. False: they are no terminal. */
bool terminal_enter(void);
void terminal_leave(void);
/* Gives it back and stops yrt, as Ctrl-Z does, until it is continued; takes it over again. */
void terminal_suspend(void);
/* Its size now. */
void terminal_size(int *columns, int *rows);
/* A key that waits, KEY_NONE if none does. */
int terminal_key(void);

#endif
