/* What cells and items have in common as `frond inspect` shows them: keys, times, values. */
#include <arpa/inet.h>
#include <math.h>
#include <time.h>

#include "base/utf8.h"
#include "catalog/draw.h"
#include "doc/doc_int.h"
#include "doc/json.h"
#include "model/timed/timed_int.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024,
	DRAW_TIME_BYTES = 64,
	US_PER_SECOND = 1000 * 1000,
	MS_PER_SECOND = 1000,
};

const char *
timed_space_name(uint64_t space)
{
	switch (space) {
	case TIMED_SPACE_SCHEMA:
		return "schema";
	case TIMED_SPACE_ROWS:
		return "rows";
	case TIMED_SPACE_EXPIRY:
		return "expiry";
	case TIMED_SPACE_CLOCK:
		return "clock";
	case TIMED_SPACE_CHANGED:
		return "changed";
	case TIMED_SPACE_BODY:
		return "bodies";
	case TIMED_SPACE_GONE:
		return "bodies to be cleared";
	case TIMED_SPACE_COUNT:
		return "count";
	case TIMED_SPACE_UNDO:
		return "undo";
	case TIMED_SPACE_HISTORY:
		return "history";
	case TIMED_SPACE_HELD:
		return "history bytes";
	case TIMED_SPACE_WEIGH:
		return "bodies to be weighed";
	case TIMED_SPACE_VERSIONS:
		return "versions";
	case TIMED_SPACE_TRIM:
		return "versions to be removed";
	case TIMED_SPACE_RETRIM:
		return "versions to be counted";
	case TIMED_SPACE_RETIME:
		return "entries to be written";
	case TIMED_SPACE_COUNTER:
		return "counters";
	case TIMED_SPACE_TABLE:
		return "table";
	case TIMED_SPACE_MARKS:
		return "marks of deletions";
	case TIMED_SPACE_DROPPED:
		return "dropped columns";
	case TIMED_SPACE_STATS:
		return "counts";
	case TIMED_SPACE_TALLIES:
		return "counts of ranges";
	default:
		return NULL;
	}
}

/* ---- Values ---- */

void
timed_draw_time(uint64_t us, struct buf *ret)
{
	time_t seconds = (time_t)(us / US_PER_SECOND);
	char text[DRAW_TIME_BYTES];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm)) {
		buf_append_u64(ret, us);
		return;
	}
	buf_printf(ret, "%s.%06uZ", text, (unsigned)(us % US_PER_SECOND));
}

void
timed_draw_text(struct str s, struct buf *ret)
{
	size_t valid = utf8_valid_prefix(s);

	buf_append_byte(ret, '\'');
	for (size_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.ptr[i];

		if (c == '\'')
			buf_append_byte(ret, '\'');
		if (c < ' ' || i == valid)
			buf_printf(ret, "\\x%02x", (unsigned)c);
		else
			buf_append_byte(ret, c);
		if (i == valid)
			valid = i + 1 + utf8_valid_prefix(str_skip(s, i + 1));
	}
	buf_append_byte(ret, '\'');
}

static void
draw_hex(const char *prefix, struct str s, struct buf *ret)
{
	buf_append_cstr(ret, prefix);
	buf_append_hex(ret, s);
}

static void
draw_uuid(struct str s, struct buf *ret)
{
	static const size_t ends[] = { 4, 6, 8, 10, DOC_UUID_BYTES };
	size_t from = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		draw_hex(i ? "-" : "", str_of(s.ptr + from, ends[i] - from), ret);
		from = ends[i];
	}
}

static void
draw_integer(const struct doc_scalar *s, struct buf *ret)
{
	if (s->text.len <= TUPLE_INT_MAX_BYTES)
		doc_integer_write(ret, s->negative, s->text);
	else
		draw_hex(s->negative ? "-0x" : "0x", s->text, ret);
}

static void
draw_double(double d, struct buf *ret)
{
	if (isfinite(d))
		json_write_double(ret, d);
	else
		buf_append_cstr(ret, isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity");
}

static void
draw_inet(struct str s, struct buf *ret)
{
	char text[INET6_ADDRSTRLEN];

	if (inet_ntop(s.len == DOC_INET4_BYTES ? AF_INET : AF_INET6, s.ptr, text, sizeof(text)))
		buf_append_cstr(ret, text);
}

/* "14mo3d5000ns": its three parts, of one sign, without those that are zero. */
static void
draw_duration(const struct doc_scalar *s, struct buf *ret)
{
	const struct {
		int64_t n;
		const char *unit;
	} parts[] = { { s->months, "mo" }, { s->days, "d" }, { s->n, "ns" } };
	bool any = false;

	if (s->months < 0 || s->days < 0 || s->n < 0)
		buf_append_byte(ret, '-');
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t n = (uint64_t)parts[i].n;

		if (!n)
			continue;
		n = parts[i].n < 0 ? 0 - n : n;
		buf_printf(ret, "%llu%s", (unsigned long long)n, parts[i].unit);
		any = true;
	}
	if (!any)
		buf_append_cstr(ret, "0ns");
}

void
timed_draw_scalar(const struct doc_scalar *s, struct buf *ret)
{
	switch ((int)s->kind) {
	case DOC_NULL:
		buf_append_cstr(ret, "[NULL]");
		return;
	case DOC_BOOL:
		buf_append_cstr(ret, s->truth ? "true" : "false");
		return;
	case DOC_TEXT:
		timed_draw_text(s->text, ret);
		return;
	case DOC_BYTES:
		draw_hex("0x", s->text, ret);
		return;
	case DOC_INTEGER:
		draw_integer(s, ret);
		return;
	case DOC_DECIMAL:
		draw_integer(s, ret);
		buf_printf(ret, "E%lld", (long long)-s->n);
		return;
	case DOC_DOUBLE:
		draw_double(s->d, ret);
		return;
	case DOC_FLOAT:
		draw_double((double)s->f, ret);
		return;
	case DOC_UUID:
	case DOC_TIMEUUID:
		draw_uuid(s->text, ret);
		return;
	case DOC_INET:
		draw_inet(s->text, ret);
		return;
	case DOC_DECIMAL128:
		buf_printf(ret, "decimal128 %016llx%016llx", (unsigned long long)s->high,
			   (unsigned long long)s->low);
		return;
	case DOC_DURATION:
		draw_duration(s, ret);
		return;
	default: /* integers; times in their units */
		buf_printf(ret, "%lld", (long long)s->n);
		return;
	}
}

/* As it was given, in seconds from the write on; none where nothing would expire anyway. */
static void
draw_ttl(const struct catalog_db *db, const struct timed_cell *cell, struct buf *ret)
{
	uint64_t from_ms = cell->write_us / TIMED_US_PER_MS;
	uint64_t ttl_ms;

	if (cell->by_default)
		return;
	if (cell->at_ms == TIMED_CELL_NEVER) {
		buf_append_cstr(ret, db->options[TIMED_OPTION_TTL_MS] ? "(TTL = 0) " : "");
		return;
	}
	ttl_ms = cell->at_ms > from_ms ? cell->at_ms - from_ms : 0;
	buf_printf(ret, "(TTL = %llu", (unsigned long long)(ttl_ms / MS_PER_SECOND));
	if (ttl_ms % MS_PER_SECOND)
		buf_printf(ret, ".%03u", (unsigned)(ttl_ms % MS_PER_SECOND));
	buf_append_cstr(ret, ") ");
}

void
timed_draw_written(const struct catalog_db *db, const struct timed_cell *cell, struct buf *ret)
{
	if (cell->type == TIMED_INSERTED)
		buf_append_cstr(ret, ", liveness_column_id");
	buf_append_cstr(ret, ", ");
	timed_draw_time(cell->write_us, ret);
	if (cell->has_stamp)
		buf_printf(ret, " (TIMESTAMP = %lld)", (long long)cell->stamp);
	buf_append_cstr(ret, " -> ");
	draw_ttl(db, cell, ret);
}

/* ---- Places ---- */

static void
draw_key(const struct timed_schema *schema, const struct timed_place *place, struct buf *ret)
{
	buf_printf(ret, "(0x%04x", place->hash);
	for (size_t i = 0; i < schema->key_count; i++) {
		buf_append_cstr(ret, ", ");
		timed_draw_scalar(&place->key[i], ret);
	}
	buf_append_byte(ret, ')');
}

static void
draw_path(const struct timed_schema *schema, const struct timed_path *path, struct buf *ret)
{
	for (size_t i = 0; i < path->count; i++) {
		const struct timed_step *step = &path->steps[i];

		buf_append_cstr(ret, ", ");
		if (step->column && step->column <= schema->column_count)
			buf_printf(ret, "%.*s_column_id",
				   STR_ARG(schema->columns[step->column - 1]));
		else if (step->column)
			buf_printf(ret, "column_id %llu", (unsigned long long)step->column);
		else
			timed_draw_scalar(&step->key, ret);
	}
}

void
timed_draw_place(const struct timed_schema *schema, const struct timed_place *place,
		 struct buf *ret)
{
	draw_key(schema, place, ret);
	draw_path(schema, &place->path, ret);
}

/* ---- Pairs ---- */

/* An entry of what expires: the time, and the place. */
static enum status
draw_entry(const struct catalog_db *db, struct str tail, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct timed_place place;
	uint64_t shard, ms;

	TRY(tuple_next_u64(&r, &shard));
	TRY(tuple_next_u64(&r, &ms));
	TRY(timed_place_parse(timed_schema_of(db), r.rest, arena, &place));
	timed_draw_time(ms * TIMED_US_PER_MS, ret);
	buf_append_cstr(ret, ", ");
	timed_draw_place(timed_schema_of(db), &place, ret);
	return STATUS_OK;
}

/* The bytes of a bucket, and whether more of it is to be counted. */
static enum status
draw_held(struct str tail, struct str value, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t bucket, bytes;
	struct str place;

	TRY(tuple_next_u64(&r, &bucket));
	if (r.rest.len || !history_held_parse(value, &bytes, &place))
		return STATUS_CORRUPT;
	buf_printf(ret, "bucket %llu: %llu%s", (unsigned long long)bucket,
		   (unsigned long long)bytes, place.len ? " so far" : "");
	return STATUS_OK;
}

static enum status
draw_clock(struct str value, struct buf *ret)
{
	uint64_t us;

	TRY(timed_clock_parse(value, &us));
	buf_append_cstr(ret, "the latest write: ");
	timed_draw_time(us, ret);
	return STATUS_OK;
}

bool
timed_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		struct buf *ret)
{
	struct arena *arena = db->extension ? catalog_draw_arena(DRAW_ARENA_BYTES, ret) : NULL;
	enum status status = STATUS_NOT_FOUND;
	size_t len = ret->len;

	if (arena && space == TIMED_SPACE_EXPIRY)
		status = draw_entry(db, tail, arena, ret);
	else if (space == TIMED_SPACE_CLOCK)
		status = draw_clock(value, ret);
	else if (space == TIMED_SPACE_HELD)
		status = draw_held(tail, value, ret);
	else if (space == TIMED_SPACE_CHANGED && catalog_draw_stamp(value, ret))
		status = STATUS_OK;
	arena_free(arena);
	if (status != STATUS_OK)
		ret->len = len;
	return status == STATUS_OK;
}
