/* Checkpoints: comparing what two ends remember, and writing what they are to remember. */
#include "replicator/checkpoint.h"

#include <stdio.h>
#include <time.h>

#include "doc/json_value.h"
#include "replicator/spec.h"

enum {
	CHECKPOINT_READ_ENTRIES = 200, /* of a history; CouchDB keeps 50 */
};

struct checkpoint_entry {
	struct str text;
	struct str session; /* as JSON text */
	struct str seq;
};

struct checkpoint_log {
	struct str session;
	struct str seq;
	struct checkpoint_entry *entries;
	size_t count;
};

static struct str
checkpoint_member_text(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value ? value->text : (struct str){ NULL, 0 };
}

static enum status
checkpoint_read_entries(const struct json_value *history, struct arena *arena,
			struct checkpoint_log *log)
{
	struct json_value *items;
	size_t count;

	TRY(json_value_items(history, arena, &items, &count, NULL));
	/* Older entries than CouchDB and frond keep say nothing; two long lists are a product. */
	if (count > CHECKPOINT_READ_ENTRIES)
		count = CHECKPOINT_READ_ENTRIES;
	log->entries = arena_zalloc(arena, (count + 1) * sizeof(*log->entries));
	if (!log->entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct checkpoint_entry *e = &log->entries[log->count];
		struct json_member *members;
		size_t n;

		if (items[i].kind != JSON_OBJECT_BEGIN)
			continue;
		TRY(json_value_members(&items[i], arena, &members, &n, NULL));
		e->text = items[i].text;
		e->session = checkpoint_member_text(members, n, "session_id");
		e->seq = checkpoint_member_text(members, n, "recorded_seq");
		log->count++;
	}
	return STATUS_OK;
}

static enum status
checkpoint_read_log(struct str body, struct arena *arena, struct checkpoint_log *log)
{
	struct json_value object;
	struct json_member *members;
	const struct json_value *history;
	size_t count;

	*log = (struct checkpoint_log){ 0 };
	if (!body.ptr)
		return STATUS_OK;
	TRY(json_value_read(body, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	log->session = checkpoint_member_text(members, count, "session_id");
	log->seq = checkpoint_member_text(members, count, "source_last_seq");
	history = json_value_find(members, count, "history");
	if (history && history->kind == JSON_ARRAY_BEGIN)
		return checkpoint_read_entries(history, arena, log);
	return STATUS_OK;
}

/* Text that is no checkpoint counts as none: any client may write there. A lack of memory fails. */
static enum status
checkpoint_read_log_if_valid(struct str body, struct arena *arena, struct checkpoint_log *log)
{
	enum status status = checkpoint_read_log(body, arena, log);

	if (status == STATUS_OK || status == STATUS_LIMIT || status == STATUS_NOMEM)
		return status;
	*log = (struct checkpoint_log){ 0 };
	return STATUS_OK;
}

static bool
checkpoint_has_session(const struct checkpoint_entry *entries, size_t count, struct str session)
{
	for (size_t i = 0; i < count; i++)
		if (session.ptr && str_eq(entries[i].session, session))
			return true;
	return false;
}

static uint64_t
checkpoint_member_number(const struct json_member *members, size_t count, const char *name)
{
	struct str text = checkpoint_member_text(members, count, name);
	uint64_t n;

	return text.ptr && str_to_u64(text, &n) ? n : 0;
}

/* The figures of an entry; 0 for those that it has not, or not as whole numbers. */
static enum status
checkpoint_read_counts(struct str entry, struct arena *arena, struct checkpoint_counts *ret)
{
	struct json_value value;
	struct json_member *members;
	size_t n;

	TRY(json_value_read(entry, arena, &value, NULL));
	TRY(json_value_members(&value, arena, &members, &n, NULL));
	*ret = (struct checkpoint_counts){
		.revisions_checked = checkpoint_member_number(members, n, "missing_checked"),
		.missing_found = checkpoint_member_number(members, n, "missing_found"),
		.docs_read = checkpoint_member_number(members, n, "docs_read"),
		.docs_written = checkpoint_member_number(members, n, "docs_written"),
		.write_failures = checkpoint_member_number(members, n, "doc_write_failures"),
		.bulk_get_docs = checkpoint_member_number(members, n, "bulk_get_docs"),
		.bulk_get_attempts = checkpoint_member_number(members, n, "bulk_get_attempts"),
	};
	return STATUS_OK;
}

static enum status
checkpoint_take_agreed(const struct checkpoint_entry *entries, size_t count, struct str seq,
		       struct arena *arena, struct checkpoint_found *ret)
{
	ret->history = arena_alloc(arena, (count + 1) * sizeof(*ret->history));
	if (!ret->history)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		ret->history[i] = entries[i].text;
	ret->history_count = count;
	if (seq.ptr)
		ret->seq = seq;
	return count ? checkpoint_read_counts(entries[0].text, arena, &ret->counts) : STATUS_OK;
}

enum status
checkpoint_compare(struct str source, struct str target, struct arena *arena,
		   struct checkpoint_found *ret)
{
	struct checkpoint_log s;
	struct checkpoint_log t;

	*ret = (struct checkpoint_found){ .seq = STR("0") };
	TRY(checkpoint_read_log_if_valid(source, arena, &s));
	TRY(checkpoint_read_log_if_valid(target, arena, &t));
	if (s.session.ptr && t.session.ptr && str_eq(s.session, t.session))
		return checkpoint_take_agreed(s.entries, s.count, s.seq, arena, ret);
	for (size_t i = 0; i < s.count && i < t.count; i++) {
		const struct checkpoint_entry *a = &s.entries[i];
		const struct checkpoint_entry *b = &t.entries[i];

		if (checkpoint_has_session(b, t.count - i, a->session))
			return checkpoint_take_agreed(a + 1, s.count - i - 1, a->seq, arena, ret);
		if (checkpoint_has_session(a + 1, s.count - i - 1, b->session))
			return checkpoint_take_agreed(b + 1, t.count - i - 1, b->seq, arena, ret);
	}
	return STATUS_OK;
}

static void
checkpoint_write_number(struct buf *out, const char *name, uint64_t n)
{
	buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)n);
}

static void
checkpoint_write_entry(const struct checkpoint_session *session, struct str seq, const char *ended,
		       const struct checkpoint_counts *counts, struct buf *out)
{
	buf_printf(out,
		   "{\"session_id\":\"%s\",\"start_time\":\"%s\",\"end_time\":\"%s\","
		   "\"start_last_seq\":%.*s,\"end_last_seq\":%.*s,\"recorded_seq\":%.*s",
		   session->id, session->started, ended, STR_ARG(session->start_seq), STR_ARG(seq),
		   STR_ARG(seq));
	checkpoint_write_number(out, "missing_checked", counts->revisions_checked);
	checkpoint_write_number(out, "missing_found", counts->missing_found);
	checkpoint_write_number(out, "docs_read", counts->docs_read);
	checkpoint_write_number(out, "docs_written", counts->docs_written);
	checkpoint_write_number(out, "doc_write_failures", counts->write_failures);
	checkpoint_write_number(out, "bulk_get_docs", counts->bulk_get_docs);
	checkpoint_write_number(out, "bulk_get_attempts", counts->bulk_get_attempts);
	buf_append_byte(out, '}');
}

void
checkpoint_write(const struct checkpoint_session *session, struct str seq, uint64_t ended_ms,
		 const struct checkpoint_counts *counts, const struct checkpoint_found *before,
		 struct buf *out)
{
	char ended[CHECKPOINT_DATE_BYTES];

	checkpoint_http_date(ended_ms, ended);
	buf_printf(out, "\"session_id\":\"%s\",\"source_last_seq\":%.*s", session->id,
		   STR_ARG(seq));
	checkpoint_write_number(out, "replication_id_version", SPEC_VERSION);
	if (session->by_ids) {
		buf_printf(out, ",\"start_time\":\"%s\",\"end_time\":\"%s\"", session->started,
			   ended);
		checkpoint_write_number(out, "docs_read", counts->docs_read);
		checkpoint_write_number(out, "docs_written", counts->docs_written);
		checkpoint_write_number(out, "doc_write_failures", counts->write_failures);
	}
	buf_append_cstr(out, ",\"history\":[");
	checkpoint_write_entry(session, seq, ended, counts, out);
	for (size_t i = 0; i < before->history_count && i + 1 < CHECKPOINT_HISTORY; i++) {
		buf_append_byte(out, ',');
		buf_append_str(out, before->history[i]);
	}
	buf_append_byte(out, ']');
}

static struct tm
checkpoint_utc(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return tm;
}

void
checkpoint_http_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES])
{
	struct tm tm = checkpoint_utc(ms);

	/* Names of days and months are those of the C locale, which is never left. */
	if (strftime(ret, CHECKPOINT_DATE_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		ret[0] = '\0';
}

void
checkpoint_iso_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES])
{
	struct tm tm = checkpoint_utc(ms);

	if (strftime(ret, CHECKPOINT_DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		ret[0] = '\0';
}
