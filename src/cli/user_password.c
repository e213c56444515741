/*
 * Reads a password from standard input, because an argument would show in lists of processes and in
 * the shell's history.
 */
#include "cli/user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "access/auth.h"
#include "base/utf8.h"

/*
 * Reads one line without its end. It reads byte by byte, so that what follows stays for the next
 * reader.
 */
static enum status
password_read_line(char *to, size_t cap, size_t *ret, struct err *err)
{
	size_t n = 0;

	for (;;) {
		char c;
		ssize_t got = read(STDIN_FILENO, &c, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, STATUS_IO, "cannot read the password: %s",
				       strerror(errno));
		if (got == 0 || c == '\n')
			break;
		if (n == cap)
			return err_set(err, STATUS_INVALID, "a password has at most %zu bytes",
				       cap);
		to[n++] = c;
	}
	*ret = n;
	return STATUS_OK;
}

static enum status
password_prompt(struct str name, const char *again, char *to, size_t cap, size_t *ret,
		struct err *err)
{
	enum status status;

	fprintf(stderr, "Password of %.*s%s: ", STR_ARG(name), again);
	status = password_read_line(to, cap, ret, err);
	fputc('\n', stderr); /* the terminal did not show the one that was typed */
	return status;
}

static enum status
password_ask(struct str name, char *to, size_t cap, size_t *ret, struct err *err)
{
	char again[AUTH_PASSWORD_BYTES];
	struct termios shown, hidden;
	enum status status;
	size_t len = 0;

	if (tcgetattr(STDIN_FILENO, &shown) != 0)
		return err_set(err, STATUS_IO, "cannot ask for a password: %s", strerror(errno));
	hidden = shown;
	hidden.c_lflag &= ~(tcflag_t)ECHO;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) != 0)
		return err_set(err, STATUS_IO, "cannot ask for a password: %s", strerror(errno));
	status = password_prompt(name, "", to, cap, ret, err);
	if (status == STATUS_OK)
		status = password_prompt(name, ", again", again, sizeof(again), &len, err);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
	if (status == STATUS_OK && !str_eq(str_of(to, *ret), str_of(again, len)))
		status = err_set(err, STATUS_INVALID, "the passwords differ");
	explicit_bzero(again, sizeof(again));
	return status;
}

enum status
user_read_password(struct str name, struct arena *arena, struct str *ret, struct err *err)
{
	char text[AUTH_PASSWORD_BYTES];
	size_t len = 0;

	if (isatty(STDIN_FILENO))
		TRY(password_ask(name, text, sizeof(text), &len, err));
	else
		TRY(password_read_line(text, sizeof(text), &len, err));
	if (len == 0)
		return err_set(err, STATUS_INVALID, "the password is empty");
	if (utf8_valid_prefix(str_of(text, len)) != len)
		return err_set(err, STATUS_INVALID, "the password is not valid UTF-8");
	*ret = arena_dup(arena, str_of(text, len));
	explicit_bzero(text, sizeof(text));
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}
