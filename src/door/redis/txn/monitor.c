#include "door/redis/txn/monitor.h"

#include "base/clock.h"
#include "door/redis/acl/subcommand.h"

enum {
	SHOWN_BYTES = 4, /* that a byte of an argument may take, as \x00 */
	/* A line ends behind the argument with which it has become too long. */
	LINE_BYTES = MONITOR_LINE_BYTES + SHOWN_BYTES * MONITOR_ARG_BYTES + 1024,
};

/* ---- Who looks ---- */

void
monitor_begin(struct client *c)
{
	struct redis *r = c->redis;

	if (atomic_load(&c->monitors))
		return;
	pthread_mutex_lock(&r->monitor_lock);
	c->next_monitor = r->monitors;
	c->monitor_link = &r->monitors;
	if (c->next_monitor)
		c->next_monitor->monitor_link = &c->next_monitor;
	r->monitors = c;
	atomic_fetch_add(&r->monitor_count, 1);
	pthread_mutex_unlock(&r->monitor_lock);
	atomic_store(&c->monitors, true);
}

void
monitor_end(struct client *c)
{
	struct redis *r = c->redis;

	if (!atomic_load(&c->monitors))
		return;
	pthread_mutex_lock(&r->monitor_lock);
	*c->monitor_link = c->next_monitor;
	if (c->next_monitor)
		c->next_monitor->monitor_link = c->monitor_link;
	atomic_fetch_sub(&r->monitor_count, 1);
	pthread_mutex_unlock(&r->monitor_lock);
	atomic_store(&c->monitors, false);
}

/* ---- What is seen ---- */

/* In quotes, with all bytes that are no printable characters escaped. */
static void
line_append_arg(struct buf *line, struct str arg)
{
	static const char letters[] = "\nn\rr\tt\aa\bb\"\"\\\\";
	size_t shown = arg.len < MONITOR_ARG_BYTES ? arg.len : MONITOR_ARG_BYTES;

	buf_append_byte(line, '"');
	for (size_t i = 0; i < shown; i++) {
		char ch = arg.ptr[i];
		const char *letter = letters;

		while (*letter && *letter != ch)
			letter += 2;
		if (*letter)
			buf_printf(line, "\\%c", letter[1]);
		else if (ch >= ' ' && ch <= '~')
			buf_append_byte(line, ch);
		else
			buf_printf(line, "\\x%02x", (unsigned char)ch);
	}
	if (shown < arg.len)
		buf_printf(line, "... (%zu more bytes)", arg.len - shown);
	buf_append_byte(line, '"');
}

static void
line_write(struct buf *line, const struct client *c, unsigned db, const struct command *command,
	   const struct str *argv, size_t argc)
{
	uint64_t now_ms = clock_wall_ms();

	buf_printf(line, "+%llu.%03llu000 [%u %s]", (unsigned long long)now_ms / 1000,
		   (unsigned long long)now_ms % 1000, db, c ? c->entry.peer : "lua");
	for (size_t i = 0; i < argc; i++) {
		buf_append_byte(line, ' ');
		if (line->len > MONITOR_LINE_BYTES) {
			buf_printf(line, "\"... (%zu more arguments)\"", argc - i);
			break;
		}
		line_append_arg(line, subcommand_arg_is_secret(command, argv, i) ? STR("(redacted)")
										 : argv[i]);
	}
	buf_append_cstr(line, "\r\n");
}

void
monitor_show(struct redis *r, const struct client *c, unsigned db, const struct command *command,
	     const struct str *argv, size_t argc)
{
	AUTO(buf_release) struct buf line = BUF_INIT(LINE_BYTES);
	struct push *shown = NULL;

	if (!monitor_is_on(r) || subcommand_is_admin(command, argv, argc))
		return;
	line_write(&line, c, db, command, argv, argc);
	pthread_mutex_lock(&r->monitor_lock);
	if (r->monitors && buf_status(&line) == STATUS_OK)
		shown = push_new(r->monitors->part, line.len, false);
	if (shown)
		buf_append_buf(&shown->bytes, &line);
	/* Without memory they miss a command, are closed, and so know it. */
	for (struct client *one = r->monitors; one; one = one->next_monitor)
		client_push(one, shown);
	pthread_mutex_unlock(&r->monitor_lock);
	push_unref(shown);
}
