/*
 * A worker that means harm, or is broken: it greets its server and answers the first call by what
 * the environment's LANG names, which is one of the few things that a worker is told.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "js/bounds.h"
#include "js/wire.h"

enum {
	BYTES = 1024 * 1024,
	UNREAD = 64 * 1024 * 1024,
};

static struct buf out = BUF_INIT(UNREAD);
static char in[BYTES];

static void
send_out(void)
{
	size_t done = 0;

	while (done < out.len) {
		ssize_t n = write(JS_WORKER_SOCKET, out.ptr + done, out.len - done);

		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
	buf_clear(&out);
}

static void
put_head(uint32_t magic, uint32_t kind, uint32_t number, uint32_t bytes)
{
	wire_put_u32(&out, magic);
	wire_put_u32(&out, kind);
	wire_put_u32(&out, number);
	wire_put_u32(&out, bytes);
}

static void
put_log(uint32_t number)
{
	size_t begin = wire_begin(&out, WIRE_LOG, number);

	wire_put_text(&out, STR("\x1b[2J\n"));
	wire_end(&out, begin);
}

/* An answer to a map of one document by one function, without rows. */
static void
put_answer(uint32_t kind, uint32_t number, uint32_t done)
{
	size_t begin = wire_begin(&out, kind, number);

	wire_put_u32(&out, done);
	wire_put_u32(&out, 0);
	wire_end(&out, begin);
}

static void
misbehave(const char *how)
{
	if (strcmp(how, "exit") == 0)
		_exit(3);
	if (strcmp(how, "noise") == 0)
		buf_append_cstr(&out, "HTTP/1.1 200 OK\r\n\r\nhello, hello, hello");
	if (strcmp(how, "huge") == 0)
		put_head(WIRE_MAGIC, WIRE_DONE, 1, UINT32_MAX);
	if (strcmp(how, "unfinished") == 0)
		put_head(WIRE_MAGIC, WIRE_DONE, 1, 100);
	if (strcmp(how, "number") == 0)
		put_answer(WIRE_DONE, 7, 1);
	if (strcmp(how, "kind") == 0)
		put_answer(WIRE_MAP, 1, 1);
	if (strcmp(how, "nothing_done") == 0)
		put_answer(WIRE_DONE, 1, 0);
	if (strcmp(how, "too_much_done") == 0)
		put_answer(WIRE_DONE, 1, 2);
	if (strcmp(how, "no_error") == 0)
		put_answer(WIRE_ERROR, 1, 1);
	if (strcmp(how, "twice") == 0) {
		put_answer(WIRE_DONE, 1, 1);
		put_answer(WIRE_DONE, 1, 1);
	}
	while (strcmp(how, "flood") == 0) {
		put_log(1);
		send_out();
	}
	send_out();
}

int
main(void)
{
	const char *how = getenv("LANG");
	size_t begin;

	if (!how || read(JS_WORKER_SOCKET, in, sizeof(in)) <= 0)
		return 1;
	if (strcmp(how, "bad_hello") == 0) {
		put_answer(WIRE_DONE, 0, 1);
		send_out();
	}
	begin = wire_begin(&out, WIRE_HELLO, 0);
	wire_put_u32(&out, WIRE_VERSION);
	wire_end(&out, begin);
	send_out();
	if (strcmp(how, "unread") == 0) {
		put_answer(WIRE_DONE, 1, 1);
		send_out();
	} else {
		if (read(JS_WORKER_SOCKET, in, sizeof(in)) <= 0)
			return 1;
		misbehave(how);
	}
	pause();
	return 0;
}
