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

enum {
	FOUND_BOOKMARK_BYTES = 4096, /* of a bookmark that a test goes on with */
};

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

/* ---- Queries ---- */

/* "a,b": the ids of the last answer's documents, in their order. Overwritten by the next call. */
static inline const char *
found_ids(void)
{
	static char text[4096];
	const char *at = d->last.body;
	size_t len = 0;

	text[0] = '\0';
	while ((at = strstr(at, "{\"_id\":\"")) && len < sizeof(text) - 64) {
		const char *end = strchr(at + 8, '"');

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? "," : "",
					(int)(end - at - 8), at + 8);
		at = end;
	}
	return text;
}

/* A _find that must be answered with these documents. */
static inline void
expect_found(const char *db, const char *body, const char *ids)
{
	door_expect(d, "POST", format("/%s/_find", db), body, 200, "{\"docs\":[\r\n");
	assert_string_equal(found_ids(), ids);
}

/* The bookmark of the last answer. Overwritten by the next call. */
static inline const char *
found_bookmark(void)
{
	static char text[FOUND_BOOKMARK_BYTES];
	const char *at = strstr(d->last.body, "\"bookmark\": \"");

	assert_non_null(at);
	at += strlen("\"bookmark\": \"");
	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\""), at);
	return text;
}

#endif
