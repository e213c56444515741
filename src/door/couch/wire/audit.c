#include "door/couch/wire/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"

/* Lines in the present second, by all loops, and how many were left out since the last line. */
static _Atomic uint64_t audit_second;
static _Atomic uint32_t audit_lines;
static _Atomic uint64_t audit_left_out;

/*
 * True if a line may be written now. Two loops that enter a new second at the same time may both
 * reset the count, which does no harm: one line more is written.
 */
static bool
audit_may_log(void)
{
	uint64_t now = clock_mono_ns() / (1000 * CLOCK_NS_PER_MS);

	if (atomic_exchange(&audit_second, now) != now)
		atomic_store(&audit_lines, 0);
	if (atomic_fetch_add(&audit_lines, 1) < AUDIT_LINES_PER_S)
		return true;
	atomic_fetch_add(&audit_left_out, 1);
	return false;
}

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
	if (!audit_may_log())
		return;
	buf_append_cstr(&said, "name=\"");
	quote_word(&said, name, AUDIT_VALUE_BYTES);
	buf_printf(&said, "\" method=%s", method);
	if (!right)
		buf_printf(&said, " reason=%s", status == STATUS_FORBIDDEN ? "locked" : "wrong");
	if (failing)
		buf_append_cstr(&said, " failing=true");
	buf_printf(&said, " left_out=%llu",
		   (unsigned long long)atomic_exchange(&audit_left_out, 0));
	buf_append_byte(&said, '\0');
	audit_write(r, right && !failing ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
		    right ? "login" : "login_refused", said.ptr);
}

void
couch_audit_refused(struct couch_req *r, int code)
{
	char room[AUDIT_VALUE_BYTES + 192];
	struct buf said = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (r->audited || !audit_may_log())
		return;
	buf_append_cstr(&said, "method=");
	quote_word(&said, http_method(r->x), 32);
	buf_append_cstr(&said, " path=\"");
	quote_word(&said, http_path(r->x), AUDIT_VALUE_BYTES);
	buf_printf(&said, "\" status=%d left_out=%llu", code,
		   (unsigned long long)atomic_exchange(&audit_left_out, 0));
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
