/*
 * Absurd values of every parameter of every endpoint: each gets what CouchDB answers, or a clear
 * 4xx. None is a 5xx, a reset or a hang, and none is taken without effect where CouchDB refuses it.
 */
#include "base/arena.h"
#include "common.h"
#include "doc/json_value.h"

enum {
	LONG_BYTES = 10000,
	TARGET_BYTES = 32 * 1024,
};

/* ---- Values ---- */

struct value {
	const char *text; /* as it stands in the query */
	bool fits;        /* it is a value of its class */
};

/* A value in which '@' stands for so many bytes of the character behind it. */
#define LONG "@"

static const struct value counts[] = {
	{ "0", true },
	{ "2147483648", true },
	{ "9223372036854775808", true },
	{ "18446744073709551616", true },
	{ LONG "9", true },
	{ "%2B5", true },
	{ "007", true },
	{ "-0", true },
	{ "-1", false },
	{ "-9223372036854775809", false },
	{ "-" LONG "9", false },
	{ "1e999", false },
	{ "1.5", false },
	{ "", false },
	{ "abc", false },
	{ "NaN", false },
	{ "Infinity", false },
	{ "0x10", false },
	{ "1%20", false },
	{ "%201", false },
	{ "%00", false },
	{ "5%00", false },
	{ "%ff", false },
	{ "null", false },
	{ "true", false },
	{ "%2B", false },
	{ "-", false },
	{ NULL, false },
};

/* The same, but zero is too small. */
static const struct value positives[] = {
	{ "1", true },    { "18446744073709551616", true },
	{ "007", true },  { LONG "9", true },
	{ "0", false },   { "-0", false },
	{ "-1", false },  { "-18446744073709551616", false },
	{ "", false },    { "1.5", false },
	{ "x", false },   { "1e3", false },
	{ "%00", false }, { NULL, false },
};

/* What _uuids has as its limit is part of its answer. */
static const struct value few[] = {
	{ "0", true },       { "1000", true }, { "%2B5", true },
	{ "1001", false },   { "-1", false },  { "18446744073709551616", false },
	{ LONG "9", false }, { "", false },    { "1.5", false },
	{ "x", false },      { "%00", false }, { NULL, false },
};

static const struct value flags[] = {
	{ "false", true }, { "FALSE", true },       { "False", true },    { "", false },
	{ "1", false },    { "%22true%22", false }, { "null", false },    { "0", false },
	{ "yes", false },  { "true%20", false },    { "true%00", false }, { "%ff", false },
	{ NULL, false },
};

/* Flags of documents and feeds: whatever is not "true" is off. */
static const struct value switches[] = {
	{ "", true },     { "TRUE", true },    { "1", true },   { "%22true%22", true },
	{ "null", true }, { "true%00", true }, { "%ff", true }, { LONG "t", true },
	{ "true", true }, { "false", true },   { NULL, false },
};

static const struct value keys[] = {
	{ "%22" LONG "x%22", true },
	{ "%22%5Cu0000%22", true },
	{ "1", true },
	{ "null", true },
	{ "%7B%7D", true },
	{ "%5B%5B1%5D%5D", true },
	{ "1e999", true },
	{ "", false },
	{ "a", false },
	{ "%22", false },
	{ "%7B", false },
	{ "%5B", false },
	{ LONG "[", false },
	{ "%22%5Cud800%22", false },
	{ "%22%00%22", false },
	{ "%22%ff%22", false },
	{ "%ff", false },
	{ "nan", false },
	{ "%22a%22%22b%22", false },
	{ NULL, false },
};

static const struct value lists[] = {
	{ "%5B%5D", true },   { "%5B1%5D", true },    { "%5Bnull,%22a%22%5D", true },
	{ "%22a%22", false }, { "1", false },         { "%7B%7D", false },
	{ "", false },        { "%5B", false },       { "%5B%22%5Cud800%22%5D", false },
	{ LONG "[", false },  { "%5B%00%5D", false }, { NULL, false },
};

static const struct value revs[] = {
	{ "1-", true },
	{ "0-a", true },
	{ "1-abc", true },
	{ "1-%C3%A4", true },
	{ "", false },
	{ "a", false },
	{ "1", false },
	{ "0", false },
	{ "-1", false },
	{ "-1-a", false },
	{ "99999999999999999999-a", false },
	{ "1e5-a", false },
	{ "1.5-a", false },
	{ "1-%00", false },
	{ "1-%ff", false },
	{ "1-a%20", false },
	{ "%221-abc%22", false },
	{ "1-" LONG "a", false },
	{ NULL, false },
};

static const struct value rev_lists[] = {
	{ "%5B%5D", true },
	{ "%5B%221-abc%22%5D", true },
	{ "%5B%220-a%22,%221-%22%5D", true },
	{ "1-abc", false },
	{ "%22all%22", false },
	{ "%22" LONG "x%22", false },
	{ "ALL", false },
	{ "", false },
	{ "%7B%7D", false },
	{ "null", false },
	{ "%5B1%5D", false },
	{ "%5Bnull%5D", false },
	{ "%5B%22%22%5D", false },
	{ "%5B%22a%22%5D", false },
	{ "%5B%221-abc%22", false },
	{ "%5B%221-%00%22%5D", false },
	{ "%5B%221-%5Cud800%22%5D", false },
	{ "%5B%2299999999999999999999-a%22%5D", false },
	{ LONG "[", false },
	{ NULL, false },
};

static const struct value seqs[] = {
	{ "", true },
	{ "0", true },
	{ "now", true },
	{ "%220%22", true },
	{ "1", false },
	{ "-1", false },
	{ "abc", false },
	{ "NOW", false },
	{ "%22now%22", false },
	{ "1-abc", false },
	{ LONG "9", false },
	{ "null", false },
	{ "%5B%5D", false },
	{ "%00", false },
	{ "%ff", false },
	{ "1.5", false },
	{ "ffffffffffffffffffffffffff", false },
	{ NULL, false },
};

static const struct value heartbeats[] = {
	{ "true", true },  { "1", true }, { LONG "9", true }, { "0", false },   { "-1", false },
	{ "TRUE", false }, { "", false }, { "1.5", false },   { "%00", false }, { NULL, false },
};

static const struct value feeds[] = {
	{ "normal", true }, { "NORMAL", false }, { "", false },       { "normal%00", false },
	{ "x", false },     { "%ff", false },    { LONG "f", false }, { NULL, false },
};

static const struct value styles[] = {
	{ "main_only", true }, { "all_docs", true }, { "ALL_DOCS", false }, { "", false },
	{ "x", false },        { "%00", false },     { NULL, false },
};

static const struct value filters[] = {
	{ "", true },       { "_design", true },   { "x", false },         { "_x", false },
	{ "_view", false }, { "_doc_ids", false }, { "_selector", false }, { "%00", false },
	{ "%ff", false },   { LONG "f", false },   { NULL, false },
};

/* A text that is looked for, or means nothing: there is no wrong one. */
static const struct value texts[] = {
	{ "", true },    { "x", true },        { "%00", true },    { "%ff", true }, { "%F0", true },
	{ "%22", true }, { "a%0d%0ab", true }, { LONG "a", true }, { NULL, false },
};

static const struct value nones[] = {
	{ "", false },  { "x", false },    { "%00", false },    { "%ff", false },
	{ "1", false }, { "TRUE", false }, { LONG "a", false }, { NULL, false },
};

/* Of a database that has no partitions. */
static const struct value no_partitions[] = {
	{ "", true },     { "x", false },   { "_x", false },     { "a:b", false },
	{ "%00", false }, { "%ff", false }, { LONG "a", false }, { NULL, false },
};

/* Of CouchDB's words for how fresh an index must be, those that more than one parameter takes. */
static const struct value words[] = {
	{ "true", true }, { "false", true }, { "TRUE", false }, { "", false },
	{ "x", false },   { "%00", false },  { "1", false },    { NULL, false },
};

static const struct value pointers[] = {
	{ "", true },        { "/x", true },   { "x", false },   { "/~", false },
	{ "/~2", false },    { "%00", false }, { "%ff", false }, { "/%ff", false },
	{ LONG "/", false }, { NULL, false },
};

static const struct value engines[] = {
	{ "couch", true }, { "", false }, { "COUCH", false }, { "%00", false }, { NULL, false },
};

static const struct value placements[] = {
	{ "z:1", true },    { "a:1,b:2", true }, { "", false },    { "x", false },
	{ "z:", false },    { ":1", false },     { "z:0", false }, { "z:1.5", false },
	{ "z:%00", false }, { NULL, false },
};

/* ---- The table ---- */

struct row {
	const char *param;
	const struct value *values;
	int good; /* the status of a request with a value of the class */
	int or ;  /* or this one, where a value that is well-formed names nothing */
	int bad;  /* of one with any other value */
};

#define VIEW_ROWS(status, long_key)                                                                \
	{ "limit", counts, status, 0, 400 }, { "skip", counts, status, 0, 400 },                   \
		{ "group_level", counts, status, 400, 400 },                                       \
		{ "descending", flags, status, 0, 400 },                                           \
		{ "include_docs", flags, status, 0, 400 },                                         \
		{ "inclusive_end", flags, status, 0, 400 },                                        \
		{ "conflicts", flags, status, 0, 400 }, { "update_seq", flags, status, 0, 400 },   \
		{ "reduce", flags, status, 0, 400 }, { "group", flags, status, 0, 400 },           \
		{ "attachments", flags, status, 0, 400 },                                          \
		{ "att_encoding_info", flags, status, 0, 400 },                                    \
		{ "sorted", flags, status, 0, 400 }, { "stable", words, status, 0, 400 },          \
		{ "update", words, status, 0, 400 }, { "stale", nones, status, 0, 400 },           \
		{ "key", keys, status, long_key, 400 },                                            \
		{ "startkey", keys, status, long_key, 400 },                                       \
		{ "start_key", keys, status, long_key, 400 },                                      \
		{ "endkey", keys, status, long_key, 400 },                                         \
		{ "end_key", keys, status, long_key, 400 },                                        \
		{ "startkey_docid", texts, status, 0, 400 },                                       \
		{ "start_key_doc_id", texts, status, 0, 400 },                                     \
		{ "endkey_docid", texts, status, 0, 400 },                                         \
		{ "end_key_doc_id", texts, status, 0, 400 },                                       \
	{                                                                                          \
		"partition", nones, status, 0, 400                                                 \
	}

static const struct row view_rows[] = {
	VIEW_ROWS(200, 0),
	{ "keys", lists, 200, 0, 400 },
	{ 0 },
};

/* Of views: a key that no row can have is refused, and `conflicts` by a reduce. */
static const struct row map_rows[] = {
	VIEW_ROWS(200, 400),
	{ "keys", lists, 200, 0, 400 },
	{ 0 },
};
static const struct row reduce_rows[] = {
	{ "group", flags, 200, 0, 400 },
	{ "group_level", counts, 200, 0, 400 },
	{ "reduce", flags, 200, 0, 400 },
	{ "limit", counts, 200, 0, 400 },
	{ "skip", counts, 200, 0, 400 },
	{ "key", keys, 200, 400, 400 },
	{ "include_docs", flags, 200, 0, 400 },
	{ "conflicts", flags, 400, 0, 400 },
	{ 0 },
};

/* Names come in a body to these; a list in the query is refused. */
static const struct row database_rows[] = {
	VIEW_ROWS(200, 0),
	{ "keys", lists, 400, 0, 400 },
	{ 0 },
};

#define FEED_ROWS                                                                                  \
	{ "feed", feeds, 200, 0, 400 }, { "since", seqs, 200, 0, 400 },                            \
		{ "last-event-id", seqs, 200, 0, 400 }, { "limit", counts, 200, 0, 400 },          \
		{ "timeout", counts, 200, 0, 400 }, { "heartbeat", heartbeats, 200, 0, 400 },      \
		{ "descending", switches, 200, 0, 400 },                                           \
		{ "include_docs", switches, 200, 0, 400 }, { "style", styles, 200, 0, 400 },       \
	{                                                                                          \
		"seq_interval", positives, 200, 0, 400                                             \
	}

static const struct row feed_rows[] = {
	FEED_ROWS,
	{ "conflicts", switches, 200, 0, 400 },
	{ "attachments", switches, 200, 0, 400 },
	{ "att_encoding_info", switches, 200, 0, 400 },
	{ "filter", filters, 200, 0, 400 },
	{ "view", texts, 200, 0, 400 },
	{ 0 },
};
static const struct row doc_ids_rows[] = {
	{ "doc_ids", lists, 200, 400, 400 },
	{ 0 },
};
static const struct row updates_rows[] = {
	FEED_ROWS,
	{ 0 },
};

#define DOC_FLAG_ROWS                                                                              \
	{ "revs", switches, 200, 0, 400 }, { "revs_info", switches, 200, 0, 400 },                 \
		{ "conflicts", switches, 200, 0, 400 },                                            \
		{ "deleted_conflicts", switches, 200, 0, 400 }, { "meta", switches, 200, 0, 400 }, \
		{ "local_seq", switches, 200, 0, 400 }, { "latest", switches, 200, 0, 400 },       \
		{ "attachments", switches, 200, 0, 400 },                                          \
		{ "att_encoding_info", switches, 200, 0, 400 },                                    \
	{                                                                                          \
		"deleted", switches, 200, 0, 400                                                   \
	}

static const struct row doc_rows[] = {
	DOC_FLAG_ROWS,
	{ "rev", revs, 404, 0, 400 },
	{ "open_revs", rev_lists, 200, 0, 400 },
	{ "atts_since", rev_lists, 200, 0, 400 },
	{ "r", texts, 200, 0, 400 },
	{ "path", pointers, 200, 0, 400 },
	{ "paths", lists, 404, 400, 400 },
	{ 0 },
};
static const struct row local_rows[] = {
	DOC_FLAG_ROWS,
	{ "rev", revs, 200, 0, 400 },
	{ "open_revs", rev_lists, 200, 0, 400 },
	{ "atts_since", rev_lists, 200, 0, 400 },
	{ 0 },
};
static const struct row att_rows[] = {
	{ "rev", revs, 404, 0, 400 },
	{ "latest", switches, 200, 0, 400 },
	{ 0 },
};
static const struct row put_rows[] = {
	{ "rev", revs, 409, 0, 400 },
	{ "new_edits", switches, 409, 400, 400 },
	{ "batch", texts, 409, 0, 400 },
	{ "w", texts, 409, 0, 400 },
	{ 0 },
};
static const struct row edit_rows[] = {
	{ "rev", revs, 409, 0, 400 },
	{ "w", texts, 409, 0, 400 },
	{ 0 },
};
static const struct row copy_rows[] = {
	{ "rev", revs, 404, 0, 400 },
	{ 0 },
};
static const struct row patch_rows[] = {
	{ "rev", revs, 409, 0, 400 },
	{ 0 },
};
static const struct row local_edit_rows[] = {
	{ "rev", revs, 404, 400, 400 },
	{ 0 },
};
static const struct row batch_rows[] = {
	{ "batch", texts, 201, 0, 400 },
	{ "w", texts, 201, 0, 400 },
	{ 0 },
};
static const struct row write_rows[] = {
	{ "w", texts, 201, 0, 400 },
	{ "new_edits", switches, 201, 0, 400 },
	{ 0 },
};
static const struct row bulk_get_rows[] = {
	{ "revs", switches, 200, 0, 400 },    { "attachments", switches, 200, 0, 400 },
	{ "latest", switches, 200, 0, 400 },  { "att_encoding_info", switches, 200, 0, 400 },
	{ "rev", nones, 400, 0, 400 },        { "open_revs", nones, 400, 0, 400 },
	{ "atts_since", nones, 400, 0, 400 }, { "w", nones, 400, 0, 400 },
	{ "new_edits", nones, 400, 0, 400 },  { 0 },
};
static const struct row uuids_rows[] = {
	{ "count", few, 200, 0, 400 },
	{ 0 },
};
static const struct row session_rows[] = {
	{ "basic", switches, 200, 401, 400 },
	{ 0 },
};
static const struct row create_rows[] = {
	{ "q", positives, 412, 0, 400 },
	{ "n", positives, 412, 0, 400 },
	{ "partitioned", nones, 412, 0, 400 },
	{ "scheme", nones, 412, 0, 400 },
	{ "placement", placements, 412, 0, 400 },
	{ "engine", engines, 412, 0, 400 },
	{ 0 },
};
static const struct row delete_rows[] = {
	{ "rev", revs, 400, 0, 400 },
	{ 0 },
};
static const struct row find_rows[] = {
	{ "partition", no_partitions, 200, 0, 400 },
	{ 0 },
};
static const struct row index_rows[] = {
	{ "sizes", flags, 200, 0, 400 },
	{ 0 },
};
static const struct row unknown_rows[] = {
	{ "x", texts, 200, 0, 400 },
	{ "%00", texts, 200, 0, 400 },
	{ "%ff", texts, 200, 0, 400 },
	{ 0 },
};

#define VIEW "/w/_design/v/_view/"

static const struct endpoint {
	const char *method;
	const char *path;
	const char *headers;
	const char *body;
	const struct row *rows;
} endpoints[] = {
	{ "GET", "/p/_all_docs", NULL, NULL, view_rows },
	{ "POST", "/p/_all_docs", NULL, "{}", view_rows },
	{ "POST", "/p/_all_docs/queries", NULL, "{\"queries\":[{}]}", view_rows },
	{ "GET", "/p/_design_docs", NULL, NULL, view_rows },
	{ "GET", "/p/_local_docs", NULL, NULL, view_rows },
	{ "GET", VIEW "m", NULL, NULL, map_rows },
	{ "POST", VIEW "m", NULL, "{}", map_rows },
	{ "POST", VIEW "m/queries", NULL, "{\"queries\":[{}]}", map_rows },
	{ "GET", VIEW "r", NULL, NULL, reduce_rows },
	{ "GET", "/_all_dbs", NULL, NULL, database_rows },
	{ "GET", "/_dbs_info", NULL, NULL, database_rows },
	{ "GET", "/p/_changes", NULL, NULL, feed_rows },
	{ "POST", "/p/_changes", NULL, "{}", feed_rows },
	{ "GET", "/p/_changes?filter=_doc_ids", NULL, NULL, doc_ids_rows },
	{ "GET", "/_db_updates", NULL, NULL, updates_rows },
	{ "GET", "/p/a", NULL, NULL, doc_rows },
	{ "GET", "/p/_local/a", NULL, NULL, local_rows },
	{ "GET", "/p/a/t", NULL, NULL, att_rows },
	{ "PUT", "/p/a", NULL, "{}", put_rows },
	{ "DELETE", "/p/a", NULL, NULL, edit_rows },
	{ "COPY", "/p/a", "Destination: b\r\n", NULL, copy_rows },
	{ "PATCH", "/p/a", "Content-Type: application/json-patch+json\r\n", "[]", patch_rows },
	{ "PUT", "/p/a/u", NULL, "x", edit_rows },
	{ "DELETE", "/p/a/t", NULL, NULL, edit_rows },
	{ "DELETE", "/p/_local/gone", NULL, NULL, local_edit_rows },
	{ "POST", "/p", NULL, "{}", batch_rows },
	{ "POST", "/p/_bulk_docs", NULL, "{\"docs\":[]}", write_rows },
	{ "POST", "/p/_purge", NULL, "{}", write_rows },
	{ "POST", "/p/_bulk_get", NULL, "{\"docs\":[{\"id\":\"a\"}]}", bulk_get_rows },
	{ "GET", "/p/_index", NULL, NULL, index_rows },
	{ "POST", "/p/_find", NULL, "{\"selector\":{}}", find_rows },
	{ "GET", "/_uuids", NULL, NULL, uuids_rows },
	{ "GET", "/_session", NULL, NULL, session_rows },
	{ "PUT", "/p", NULL, NULL, create_rows },
	{ "DELETE", "/p", NULL, NULL, delete_rows },
	{ "GET", "/p", NULL, NULL, unknown_rows },
	{ "GET", "/", NULL, NULL, unknown_rows },
	{ "GET", "/_up", NULL, NULL, unknown_rows },
	{ "GET", "/p/a", NULL, NULL, unknown_rows },
};

static const struct value broken_escapes[] = {
	{ "%", false },   { "%z", false }, { "%4", false },
	{ "%4z", false }, { "%%", false }, { NULL, false },
};

/* ---- Checks ---- */

static char target[TARGET_BYTES];

/* Writes the target; a LONG and a character become many of that character. */
static void
write_target(const char *path, const char *param, const char *value)
{
	size_t n = (size_t)snprintf(target, sizeof(target), "%s%c%s=", path,
				    strchr(path, '?') ? '&' : '?', param);

	for (; *value; value++) {
		if (*value != LONG[0]) {
			target[n++] = *value;
			continue;
		}
		value++;
		memset(target + n, *value, LONG_BYTES);
		n += LONG_BYTES;
	}
	target[n] = '\0';
}

static void
check_is_json(const struct response *r)
{
	struct arena *arena = arena_new(1 << 20);
	struct json_value value;

	if (json_value_read(str_of(r->body, r->body_len), arena, &value, NULL) != STATUS_OK ||
	    !strstr(r->body, "\"error\":") || !strstr(r->body, "\"reason\":"))
		fail_msg("%.100s: %d is not explained: %s", target, r->status, r->body);
	arena_free(arena);
}

static void
check(const struct endpoint *e, int status, int other)
{
	const struct response *r = door_request(d, e->method, target, e->headers, e->body);

	if (r->status != status && r->status != other)
		fail_msg("%s %.100s: expected %d or %d, got %d: %.300s", e->method, target, status,
			 other, r->status, r->body);
	if (r->status >= 400)
		check_is_json(r);
}

static void
check_row(const struct endpoint *e, const struct row *row)
{
	for (const struct value *v = row->values; row->good && v->text; v++) {
		write_target(e->path, row->param, v->text);
		check(e, v->fits ? row->good : row->bad, v->fits ? row->or : 0);
	}
	for (const struct value *v = broken_escapes; v->text; v++) {
		write_target(e->path, row->param, v->text);
		check(e, 400, 0);
		door_has(d, "\"error\":\"bad_request\"");
	}
}

static int
setup_docs(void **state)
{
	(void)setup(state);
	door_create(d, "p");
	door_expect(d, "POST", "/p/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\",\"x\":1,\"_attachments\":{\"t\":{\"data\":\"aGFsbG8="
		    "\",\"content_type\":\"text/plain\"}}}]}",
		    201, "\"ok\":true");
	door_expect(d, "PUT", "/p/_local/a", "{\"x\":1}", 201, "0-1");
	door_create(d, "w");
	door_expect(d, "PUT", "/w/a", "{}", 201, "ok");
	door_expect(d, "PUT", "/w/_design/v",
		    "{\"views\":{\"m\":{\"map\":\"(d) => { emit(d._id, 1); }\"},"
		    "\"r\":{\"map\":\"(d) => { emit(d._id, 1); }\",\"reduce\":\"_count\"}}}",
		    201, "ok");
	return 0;
}

static void
every_value_of_every_parameter_has_its_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
		if (strncmp(endpoints[i].path, VIEW, strlen(VIEW)) == 0 &&
		    !getenv("FROND_JS_WORKER"))
			continue;
		for (const struct row *row = endpoints[i].rows; row->param; row++)
			check_row(&endpoints[i], row);
	}
	door_expect(d, "GET", "/p/a", NULL, 200, "\"x\":1");
}

static void
flags_of_lists_are_true_or_false_in_any_case(void **state)
{
	(void)state;
	door_expect(d, "GET", "/p/_all_docs?include_docs=TRUE&attachments=True", NULL, 200,
		    "aGFsbG8=");
	door_expect(d, "POST", "/p/_all_docs", "{\"include_docs\":true,\"attachments\":true}", 200,
		    "aGFsbG8=");
	door_expect(d, "POST", "/p/_all_docs/queries",
		    "{\"queries\":[{\"include_docs\":true,\"attachments\":true}]}", 200,
		    "aGFsbG8=");
	door_expect(d, "GET", "/p/_all_docs?stable=TRUE", NULL, 400, "Invalid value for `stable`.");
	door_expect(d, "GET", "/p/_all_docs?reduce=TRUE", NULL, 400, "map-only views");
	door_expect(d, "GET", "/_all_dbs?reduce=maybe", NULL, 400, "Invalid boolean parameter");
	door_expect(d, "GET", "/_all_dbs?keys=%5B%22p%22%5D", NULL, 400, "_dbs_info takes names");
}

static void
values_in_a_body_are_checked_as_those_in_a_query(void **state)
{
	static const char *const refused[] = {
		"{\"limit\":-1}",        "{\"limit\":1.5}",
		"{\"limit\":\"5\"}",     "{\"limit\":1e999}",
		"{\"limit\":null}",      "{\"limit\":[1]}",
		"{\"skip\":{}}",         "{\"descending\":1}",
		"{\"descending\":null}", "{\"include_docs\":[]}",
		"{\"keys\":1}",          "{\"keys\":{}}",
		"{\"stale\":true}",      "{\"group_level\":1}",
		"{\"update\":1}",        "{\"inclusive_end\":\"\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		door_expect(d, "POST", "/p/_all_docs", refused[i], 400, "\"reason\":");
		door_expect(d, "POST", "/p/_all_docs/queries",
			    format("{\"queries\":[%s]}", refused[i]), 400, "\"reason\":");
	}
	door_expect(d, "POST", "/p/_all_docs", "{\"limit\":18446744073709551616,\"skip\":0}", 200,
		    "\"rows\"");
}

static void
of_a_parameter_given_twice_one_counts(void **state)
{
	const char *rev;

	(void)state;
	door_expect(d, "GET", "/p/_all_docs?limit=0&limit=99", NULL, 200, "\"id\":\"a\"");
	door_expect(d, "GET", "/p/_all_docs?limit=1&limit=x", NULL, 400, "integer");
	door_expect(d, "GET", "/p/_all_docs?limit=x&limit=1", NULL, 400, "integer");
	door_expect(d, "GET", "/p/_changes?limit=0&limit=99", NULL, 200, "\"id\":\"a\"");
	door_expect(d, "GET", "/_uuids?count=0&count=1", NULL, 200, "\"uuids\":[]");
	/* A flag that one of them sets is set. */
	door_expect(d, "GET", "/p/a?revs=true&revs=false", NULL, 200, "_revisions");
	door_expect(d, "GET", "/p/_changes?include_docs=true&include_docs=false", NULL, 200,
		    "\"doc\":");
	door_expect(d, "GET", "/p/a", NULL, 200, "\"x\":1");
	rev = door_member(d, "_rev");
	/* Of a document's revisions the last is read, and the first is edited. */
	door_expect(d, "GET", format("/p/a?rev=1-abc&rev=%s", rev), NULL, 200, "\"x\":1");
	door_expect(d, "GET", format("/p/a?rev=%s&rev=1-abc", rev), NULL, 404, "missing");
	door_expect(d, "PUT", format("/p/a?rev=1-abc&rev=%s", rev), "{}", 409, "conflict");
	door_expect(d, "PUT", format("/p/a/u?rev=1-abc&rev=%s", rev), "x", 409, "missing_rev");
}

static void
names_count_in_any_case_for_feeds_alone(void **state)
{
	(void)state;
	door_expect(d, "GET", "/p/_all_docs?LIMIT=0", NULL, 200, "\"id\":\"a\"");
	door_expect(d, "GET", "/p/a?REV=1-abc", NULL, 200, "\"x\":1");
	door_expect(d, "GET", "/p/_changes?LIMIT=0", NULL, 200, "\"results\":[\n\n]");
	door_expect(d, "GET", "/p/_changes?FILTER=_design", NULL, 200, "\"results\":[\n\n]");
	door_expect(d, "GET", "/p/_changes?Filter=x", NULL, 400, "designname/filtername");
	door_expect(d, "GET", "/p/_changes?INCLUDE_DOCS=true&Attachments=true", NULL, 200,
		    "aGFsbG8=");
	/* A feed is not compressed, however its name is written. */
	expect_as("Accept-Encoding: gzip\r\n", "GET", "/p/_changes?FEED=longpoll&TIMEOUT=1", NULL,
		  200, "\"id\":\"a\"");
	assert_null(response_header(&d->last, "Content-Encoding"));
}

static void
what_differs_between_feeds_is_as_in_couchdb(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_db_updates?heartbeat=false", NULL, 200, "results");
	door_expect(d, "GET", "/p/_changes?heartbeat=false", NULL, 400, "positive integer");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_of_every_parameter_has_its_answer),
		cmocka_unit_test(flags_of_lists_are_true_or_false_in_any_case),
		cmocka_unit_test(values_in_a_body_are_checked_as_those_in_a_query),
		cmocka_unit_test(of_a_parameter_given_twice_one_counts),
		cmocka_unit_test(names_count_in_any_case_for_feeds_alone),
		cmocka_unit_test(what_differs_between_feeds_is_as_in_couchdb),
	};

	return cmocka_run_group_tests(tests, setup_docs, teardown);
}
