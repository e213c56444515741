/* What the test programs of the door begin with: one server for the whole group. */
#ifndef FROND_TESTS_DOOR_COMMON_H
#define FROND_TESTS_DOOR_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"

static struct door *d;

static inline int
setup(void **state)
{
	(void)state;
	d = door_start(false);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	door_stop(d);
	return 0;
}

/* A request with headers, which must be answered with the status and a body that has the text. */
static inline void
expect_as(const char *headers, const char *method, const char *target, const char *body, int status,
	  const char *text)
{
	const struct response *r = door_request(d, method, target, headers, body);

	if (r->status != status || !strstr(r->body, text))
		fail_msg("%s %s: expected %d with %s, got %d: %s", method, target, status, text,
			 r->status, r->body);
}

/* A formatted text, valid until the next but three calls. */
__attribute__((format(printf, 1, 2))) static inline const char *
format(const char *fmt, ...)
{
	static char texts[4][4096];
	static unsigned next;
	char *text = texts[next++ % 4];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(texts[0]), fmt, args);
	va_end(args);
	return text;
}

#endif
