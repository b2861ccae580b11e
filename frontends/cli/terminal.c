/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool entered;

static void put(const char *sequence)
{
	if (write(STDOUT_FILENO, sequence, strlen(sequence)) < 0)
		return; /* a terminal that is gone needs nothing */
}

bool terminal_enter(void)
{
	static bool registered;
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return false;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped yrt would leave the terminal as it is: terminal_suspend() */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw))
		return false;
	put("\033[?1049h\033[?25l\033[?7l");
	entered = true;
	if (!registered)
		registered = !atexit(terminal_leave);
	return true;
}

void terminal_leave(void)
{
	if (!entered)
		return;
	entered = false;
	put("\033[?7h\033[?25h\033[?1049l");
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

void terminal_suspend(void)
{
	terminal_leave();
	kill(0, SIGTSTP); /* the whole job: also a program that yrt started */
	terminal_enter();
}

void terminal_size(int *columns, int *rows)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

static int read_byte(void)
{
	struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char byte;

	if (poll(&wait, 1, 0) <= 0 || read(STDIN_FILENO, &byte, 1) != 1)
		return KEY_NONE;
	return byte;
}

int terminal_key(void)
{
	int key = read_byte();

	if (key != '\033')
		return key;
	key = read_byte();
	if (key != '[' && key != 'O')
		return '\033';
	key = read_byte();
	if (key == '5' || key == '6')
		read_byte();
	switch (key) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case '5':
		return KEY_PAGE_UP;
	case '6':
		return KEY_PAGE_DOWN;
	case 'H':
		return KEY_HOME;
	}
	return KEY_NONE;
}
