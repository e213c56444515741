#include "access/audit.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "base/quote.h"

enum {
	METHOD_BYTES = 32,
	LINE_BYTES = 8 * AUDIT_VALUE_BYTES,
};

static struct log_rate audit_rate;

/* Appends ` key="value"`, with what would end the quotes written as %XX. */
static void
audit_add(struct buf *line, const char *key, struct str value)
{
	buf_printf(line, " %s=\"", key);
	quote_word(line, value, AUDIT_VALUE_BYTES);
	buf_append_byte(line, '"');
}

/* Writes a line: the text of the caller, and the fields that all lines have. */
static void
audit_write(const struct audit_by *by, enum log_level level, const char *event, struct buf *line)
{
	audit_add(line, "user", by->user);
	buf_printf(line, " from=%.*s door=%s", STR_ARG(by->address), by->door);
	if (by->request_id.len)
		buf_printf(line, " request_id=%.*s", STR_ARG(by->request_id));
	if (by->trace_id.len)
		buf_printf(line, " trace_id=%.*s", STR_ARG(by->trace_id));
	/* The first byte is the space in front of the first member. */
	log_event(level, event, "%.*s", STR_ARG(str_skip(buf_str(line), 1)));
}

static void
audit_add_left_out(struct buf *line)
{
	buf_printf(line, " left_out=%llu", (unsigned long long)log_rate_left_out(&audit_rate));
}

void
audit_login(const struct audit_by *by, struct str name, const char *method, enum status status,
	    bool failing)
{
	char room[LINE_BYTES];
	struct buf line = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	bool right = status == STATUS_OK;
	struct audit_by who = *by;

	if (!by->door || !log_rate_allows(&audit_rate, AUDIT_LINES_PER_S))
		return;
	audit_add(&line, "name", name);
	buf_printf(&line, " method=%s", method);
	if (right)
		who.user = name;
	else
		buf_printf(&line, " reason=%s", status == STATUS_FORBIDDEN ? "locked" : "wrong");
	if (failing)
		buf_append_cstr(&line, " failing=true");
	audit_add_left_out(&line);
	audit_write(&who, right && !failing ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
		    right ? "login" : "login_refused", &line);
}

void
audit_refused(const struct audit_by *by, struct str method, struct str path, const char *status)
{
	char room[LINE_BYTES];
	struct buf line = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (!by->door || !log_rate_allows(&audit_rate, AUDIT_LINES_PER_S))
		return;
	buf_append_cstr(&line, " method=");
	quote_word(&line, method, METHOD_BYTES);
	audit_add(&line, "path", path);
	buf_printf(&line, " status=%s", status);
	audit_add_left_out(&line);
	audit_write(by, LOG_LEVEL_INFO, "refused", &line);
}

void
audit_changed(const struct audit_by *by, const char *event, const char *key, struct str value)
{
	char room[LINE_BYTES];
	struct buf line = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (!by->door)
		return;
	audit_add(&line, key, value);
	audit_write(by, LOG_LEVEL_INFO, event, &line);
}
