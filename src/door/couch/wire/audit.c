#include "door/couch/wire/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "base/quote.h"

static struct log_rate audit_rate;

/* Writes a line: the text of the caller, and the fields that all lines have. */
static void
audit_write(struct couch_req *r, enum log_level level, const char *event, const char *said)
{
	/* On the stack, so that a request that ran out of memory is logged, too. */
	char room[AUDIT_VALUE_BYTES + 8];
	struct buf user = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	struct str id = http_answer_header(r->x, STR("X-Couch-Request-ID"));

	quote_word(&user, r->user.name, AUDIT_VALUE_BYTES);
	r->audited = true;
	log_event(level, event, "%s user=\"%.*s\" from=%.*s door=couch request_id=%.*s", said,
		  STR_ARG(buf_str(&user)), STR_ARG(http_peer(r->x)), STR_ARG(id));
}

void
couch_audit_login(struct couch_req *r, struct str name, const char *method, enum status status,
		  bool failing)
{
	char room[AUDIT_VALUE_BYTES + 128];
	struct buf said = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	bool right = status == STATUS_OK;

	r->audited = true;
	if (!log_rate_allows(&audit_rate, AUDIT_LINES_PER_S))
		return;
	buf_append_cstr(&said, "name=\"");
	quote_word(&said, name, AUDIT_VALUE_BYTES);
	buf_printf(&said, "\" method=%s", method);
	if (!right)
		buf_printf(&said, " reason=%s", status == STATUS_FORBIDDEN ? "locked" : "wrong");
	if (failing)
		buf_append_cstr(&said, " failing=true");
	buf_printf(&said, " left_out=%llu", (unsigned long long)log_rate_left_out(&audit_rate));
	buf_append_byte(&said, '\0');
	audit_write(r, right && !failing ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
		    right ? "login" : "login_refused", said.ptr);
}

void
couch_audit_refused(struct couch_req *r, int code)
{
	char room[AUDIT_VALUE_BYTES + 192];
	struct buf said = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (r->audited || !log_rate_allows(&audit_rate, AUDIT_LINES_PER_S))
		return;
	buf_append_cstr(&said, "method=");
	quote_word(&said, http_method(r->x), 32);
	buf_append_cstr(&said, " path=\"");
	quote_word(&said, http_path(r->x), AUDIT_VALUE_BYTES);
	buf_printf(&said, "\" status=%d left_out=%llu", code,
		   (unsigned long long)log_rate_left_out(&audit_rate));
	buf_append_byte(&said, '\0');
	audit_write(r, LOG_LEVEL_INFO, "refused", said.ptr);
}

void
couch_audit_changed(struct couch_req *r, const char *event, const char *key, struct str value)
{
	char room[AUDIT_VALUE_BYTES + 64];
	struct buf said = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	buf_printf(&said, "%s=\"", key);
	quote_word(&said, value, AUDIT_VALUE_BYTES);
	buf_append_byte(&said, '"');
	buf_append_byte(&said, '\0');
	audit_write(r, LOG_LEVEL_INFO, event, said.ptr);
}
