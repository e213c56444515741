#include "door/cql/trace/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"

struct trace *
trace_begin(struct arena *arena, const char *message, struct str user)
{
	struct trace *t = arena_zalloc(arena, sizeof(*t));

	if (!t)
		return NULL;
	rand_bytes(t->id, sizeof(t->id));
	/* Version 4, of the variant of all UUIDs. */
	t->id[6] = (uint8_t)((t->id[6] & 0x0f) | 0x40);
	t->id[8] = (uint8_t)((t->id[8] & 0x3f) | 0x80);
	t->began_us = clock_wall_us();
	t->began_ns = clock_mono_ns();
	t->message = message;
	(void)snprintf(t->user, sizeof(t->user), "%.*s", STR_ARG(user));
	return t;
}

static uint64_t
trace_age_us(const struct trace *t)
{
	return (clock_mono_ns() - t->began_ns) / 1000;
}

void
trace_set_text(struct trace *t, struct str text)
{
	if (!t)
		return;
	t->text_len = text.len < sizeof(t->text) ? text.len : sizeof(t->text);
	/* No byte that goes on with a character is the first one left out. */
	while (t->text_len && t->text_len < text.len && (text.ptr[t->text_len] & 0xc0) == 0x80)
		t->text_len--;
	memcpy(t->text, text.ptr, t->text_len);
}

void
trace_note(struct trace *t, const char *fmt, ...)
{
	struct trace_event *e;
	va_list ap;

	if (!t || t->event_count == TRACE_EVENTS)
		return;
	e = &t->events[t->event_count++];
	e->after_us = trace_age_us(t);
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

/* ---- Those of the process ---- */

static bool
trace_is(const struct expiring_entry *e, const void *key)
{
	return memcmp(((const struct trace *)e)->id, key, TRACE_ID_BYTES) == 0;
}

static void
trace_end(struct expiring_entry *e)
{
	mem_free(e);
}

static const struct expiring_rules rules = {
	.most = CQL_TRACES,
	.replaces = true,
	.is = trace_is,
	.free = trace_end,
};

void
traces_init(struct traces *traces)
{
	expiring_init(&traces->all, &rules);
}

void
traces_fini(struct traces *traces)
{
	expiring_fini(&traces->all);
}

void
trace_keep(struct traces *traces, const struct trace *t)
{
	struct trace *kept = mem_alloc(sizeof(*kept));
	uint64_t hash;

	if (!kept)
		return;
	*kept = *t;
	kept->took_us = trace_age_us(t) + 1;
	memcpy(&hash, kept->id, sizeof(hash)); /* it is random */
	if (expiring_add(&traces->all, hash, kept->id, &kept->entry, 0) == STATUS_OK)
		expiring_give(&traces->all, &kept->entry);
	else
		mem_free(kept);
}

struct traces_look {
	trace_take *take;
	void *arg;
	enum status status;
};

static void
look_at(void *arg, const struct expiring_entry *e)
{
	struct traces_look *look = arg;

	if (look->status == STATUS_OK)
		look->status = look->take(look->arg, (const struct trace *)e);
}

enum status
traces_each(struct traces *traces, trace_take *take, void *arg)
{
	struct traces_look look = { take, arg, STATUS_OK };

	expiring_each(&traces->all, look_at, &look);
	return look.status;
}
