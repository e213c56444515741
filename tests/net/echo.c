#include "echo.h"

#include "loop/wait.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The length of the whole lines at the beginning of `in`, of which none ends before `from`. */
static size_t
whole_lines(struct str in, size_t from)
{
	const char *end = memrchr(in.ptr + from, '\n', in.len - from);

	return end ? (size_t)(end - in.ptr) + 1 : 0;
}

static enum status
echo_line(struct net_stream *s, struct str line)
{
	struct event *ends[] = { net_stream_closed_event(s), net_stream_stopping_event(s) };

	if (str_eq(line, STR("who\n"))) {
		TRY(net_stream_write(s, net_stream_peer(s)));
		return net_stream_write(s, STR("\n"));
	}
	if (str_eq(line, STR("thread\n"))) {
		char text[32];

		return net_stream_write(
			s, str_of(text, (size_t)snprintf(text, sizeof(text), "%d\n", gettid())));
	}
	if (str_eq(line, STR("wait\n"))) {
		net_stream_flush(s);
		(void)event_wait_any(ends, 2, WAIT_FOREVER);
		return net_stream_write(s, STR("over\n"));
	}
	if (str_eq(line, STR("alone\n")))
		return net_stream_write(s, wait_is_alone() ? STR("yes\n") : STR("no\n"));
	if (str_eq(line, STR("rest\n"))) {
		while (!net_stream_has_input(s) && !event_is_set(ends[0]) && !event_is_set(ends[1]))
			net_stream_rest(s, NET_REST_IDLE, NULL, WAIT_FOREVER);
		return net_stream_write(s, STR("rested\n"));
	}
	return net_stream_write(s, line);
}

static bool
echo_lines(struct net_stream *s, struct str lines)
{
	while (lines.len) {
		size_t n = (size_t)((const char *)memchr(lines.ptr, '\n', lines.len) - lines.ptr);

		if (str_eq(str_of(lines.ptr, n), STR("quit")))
			return false;
		if (echo_line(s, str_of(lines.ptr, n + 1)) != STATUS_OK)
			return false;
		lines = str_skip(lines, n + 1);
	}
	return true;
}

bool
echo_serve(struct net_stream *s, void *arg)
{
	struct str in = { 0 };
	enum status status;
	size_t seen;
	size_t n;

	(void)arg;
	do {
		seen = in.len;
		status = net_stream_peek(s, seen + 1, &in);
		if (status == STATUS_LIMIT)
			(void)!net_stream_write(s, STR("too long\n"));
		if (status != STATUS_OK)
			return false;
		n = whole_lines(in, seen);
	} while (n == 0);
	if (!echo_lines(s, str_of(in.ptr, n)))
		return false;
	net_stream_take(s, n);
	return true;
}
