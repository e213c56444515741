#include "replicator/checkpoint.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "doc/json_value.h"
#include "replicator/spec.h"

struct entry {
	struct str text;
	struct str session; /* as JSON text */
	struct str seq;
};

struct log {
	struct str session;
	struct str seq;
	struct entry *entries;
	size_t count;
};

static struct str
member_text(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value ? value->text : (struct str){ NULL, 0 };
}

static enum status
read_entries(const struct json_value *history, struct arena *arena, struct log *log)
{
	struct json_value *items;
	size_t count;

	TRY(json_value_items(history, arena, &items, &count, NULL));
	log->entries = arena_zalloc(arena, (count + 1) * sizeof(*log->entries));
	if (!log->entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct entry *e = &log->entries[log->count];
		struct json_member *members;
		size_t n;

		if (items[i].kind != JSON_OBJECT_BEGIN)
			continue;
		TRY(json_value_members(&items[i], arena, &members, &n, NULL));
		e->text = items[i].text;
		e->session = member_text(members, n, "session_id");
		e->seq = member_text(members, n, "recorded_seq");
		log->count++;
	}
	return STATUS_OK;
}

static enum status
read_log(struct str body, struct arena *arena, struct log *log)
{
	struct json_value object;
	struct json_member *members;
	const struct json_value *history;
	size_t count;

	*log = (struct log){ 0 };
	if (!body.ptr)
		return STATUS_OK;
	TRY(json_value_read(body, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	log->session = member_text(members, count, "session_id");
	log->seq = member_text(members, count, "source_last_seq");
	history = json_value_find(members, count, "history");
	if (history && history->kind == JSON_ARRAY_BEGIN)
		return read_entries(history, arena, log);
	return STATUS_OK;
}

/* What was written by who knows whom, and is no checkpoint, is none; memory is another matter. */
static enum status
read_log_if_any(struct str body, struct arena *arena, struct log *log)
{
	enum status status = read_log(body, arena, log);

	if (status == STATUS_OK || status == STATUS_LIMIT || status == STATUS_NOMEM)
		return status;
	*log = (struct log){ 0 };
	return STATUS_OK;
}

static bool
has_session(const struct entry *entries, size_t count, struct str session)
{
	for (size_t i = 0; i < count; i++)
		if (session.ptr && str_eq(entries[i].session, session))
			return true;
	return false;
}

static enum status
take(const struct entry *entries, size_t count, struct str seq, struct arena *arena,
     struct checkpoint_found *ret)
{
	ret->history = arena_alloc(arena, (count + 1) * sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		ret->history[i] = entries[i].text;
	ret->history_count = count;
	if (seq.ptr)
		ret->seq = seq;
	return STATUS_OK;
}

enum status
checkpoint_compare(struct str source, struct str target, struct arena *arena,
		   struct checkpoint_found *ret)
{
	struct log s;
	struct log t;

	*ret = (struct checkpoint_found){ .seq = STR("0") };
	TRY(read_log_if_any(source, arena, &s));
	TRY(read_log_if_any(target, arena, &t));
	if (s.session.ptr && t.session.ptr && str_eq(s.session, t.session))
		return take(s.entries, s.count, s.seq, arena, ret);
	for (size_t i = 0; i < s.count && i < t.count; i++) {
		const struct entry *a = &s.entries[i];
		const struct entry *b = &t.entries[i];

		if (has_session(b, t.count - i, a->session))
			return take(a + 1, s.count - i - 1, a->seq, arena, ret);
		if (has_session(a + 1, s.count - i - 1, b->session))
			return take(b + 1, t.count - i - 1, b->seq, arena, ret);
	}
	return STATUS_OK;
}

static void
write_number(struct buf *out, const char *name, uint64_t n)
{
	buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)n);
}

static void
write_entry(const struct checkpoint_session *session, struct str seq, const char *now,
	    const struct checkpoint_counts *counts, struct buf *out)
{
	buf_printf(out,
		   "{\"session_id\":\"%s\",\"start_time\":\"%s\",\"end_time\":\"%s\","
		   "\"start_last_seq\":%.*s,\"end_last_seq\":%.*s,\"recorded_seq\":%.*s",
		   session->id, session->started, now, STR_ARG(session->start_seq), STR_ARG(seq),
		   STR_ARG(seq));
	write_number(out, "missing_checked", counts->revisions_checked);
	write_number(out, "missing_found", counts->missing_found);
	write_number(out, "docs_read", counts->docs_read);
	write_number(out, "docs_written", counts->docs_written);
	write_number(out, "doc_write_failures", counts->write_failures);
	write_number(out, "bulk_get_docs", counts->bulk_get_docs);
	write_number(out, "bulk_get_attempts", counts->bulk_get_attempts);
	buf_append_byte(out, '}');
}

void
checkpoint_write(const struct checkpoint_session *session, struct str seq,
		 const struct checkpoint_counts *counts, const struct checkpoint_found *before,
		 struct buf *out)
{
	char now[CHECKPOINT_DATE_BYTES];

	checkpoint_http_date(clock_wall_ms(), now);
	buf_printf(out, "\"session_id\":\"%s\",\"source_last_seq\":%.*s", session->id,
		   STR_ARG(seq));
	write_number(out, "replication_id_version", SPEC_VERSION);
	if (session->by_ids) {
		buf_printf(out, ",\"start_time\":\"%s\",\"end_time\":\"%s\"", session->started,
			   now);
		write_number(out, "docs_read", counts->docs_read);
		write_number(out, "docs_written", counts->docs_written);
		write_number(out, "doc_write_failures", counts->write_failures);
	}
	buf_append_cstr(out, ",\"history\":[");
	write_entry(session, seq, now, counts, out);
	for (size_t i = 0; i < before->history_count && i + 1 < CHECKPOINT_HISTORY; i++) {
		buf_append_byte(out, ',');
		buf_append_str(out, before->history[i]);
	}
	buf_append_byte(out, ']');
}

static struct tm
utc(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return tm;
}

void
checkpoint_http_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES])
{
	struct tm tm = utc(ms);

	/* Names of days and months are those of the C locale, which is never left. */
	if (strftime(ret, CHECKPOINT_DATE_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		ret[0] = '\0';
}

void
checkpoint_iso_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES])
{
	struct tm tm = utc(ms);

	if (strftime(ret, CHECKPOINT_DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		ret[0] = '\0';
}
