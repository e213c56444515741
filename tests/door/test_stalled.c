/*
 * Databases and documents that go while a client has stopped reading: the answer under way ends as
 * what it is, cut or whole, and the server goes on. And what an answer under way does not hold.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "catalog/catalog_int.h"
#include "catalog/events.h"
#include "catalog/kind.h"
#include "catalog/records.h"
#include "common.h"
#include "kv/keyspace.h"
#include "kv/kv.h"

enum {
	/* More than both ends of a connection hold: Linux has 4 MiB for the one that writes. */
	ANSWER_BYTES = 7 << 20,
	PIECE_BYTES = 500000,
	PIECES = ANSWER_BYTES / PIECE_BYTES,
	STALL_MS = 300,
	PATIENCE_MS = 60000, /* with what the server does by itself */
	EVENT_NAME_BYTES = 230,
	EVENTS = ANSWER_BYTES / (EVENT_NAME_BYTES + 70),
	EVENTS_AT_ONCE = 10000, /* in a transaction */
	SLOW_MS = 2500,         /* that a function takes, less than it may */
	LOG_BYTES = 1 << 20,
};

/* ---- What is stored ---- */

/* "…x": a JSON string of PIECE_BYTES in a document, or the bytes of an attachment. */
static void
write_xs(struct buf *to, size_t n)
{
	assert_true(buf_reserve(to, n));
	memset(to->ptr + to->len, 'x', n);
	to->len += n;
	assert_int_equal(buf_status(to), STATUS_OK);
}

static void
store_attachment(void)
{
	AUTO(buf_release) struct buf body = BUF_INIT(ANSWER_BYTES + 1);

	write_xs(&body, ANSWER_BYTES);
	client_send_bytes(d->client, "PUT", "/s/d/f", "Content-Type: image/png\r\n", body.ptr,
			  body.len);
	response_release(&d->last);
	d->last = client_receive(d->client, false);
	assert_int_equal(d->last.status, 201);
}

/* Documents, or branches of one, each of PIECE_BYTES. */
static void
store_pieces(bool branches)
{
	AUTO(buf_release) struct buf body = BUF_INIT(2 * PIECE_BYTES);

	for (int i = 0; i < PIECES; i++) {
		buf_clear(&body);
		buf_printf(&body, "{\"_rev\":\"1-%02d\",\"x\":\"", i);
		write_xs(&body, PIECE_BYTES);
		buf_append_cstr(&body, "\"}");
		buf_append_byte(&body, '\0');
		door_expect(d, "PUT",
			    branches ? "/s/d?new_edits=false"
				     : format("/s/d%02d?new_edits=false", i),
			    body.ptr, 201, "ok");
	}
}

/* ---- What is read, and what happens meanwhile ---- */

enum content {
	CONTENT_ATTACHMENT,
	CONTENT_DOCUMENTS,
	CONTENT_BRANCHES,
	CONTENT_VIEW, /* documents, and a view that has been built */
};

#define VIEW "/s/_design/v/_view/v"

static const struct answer {
	const char *path;
	enum content content;
	const char *end; /* of an answer that is whole */
} answers[] = {
	{ "/s/d/f", CONTENT_ATTACHMENT, "xxx" },
	{ "/s/d?attachments=true", CONTENT_ATTACHMENT, "}}}\n" },
	{ "/s/_all_docs?include_docs=true&attachments=true", CONTENT_ATTACHMENT, "\r\n]}\n" },
	{ "/s/d?open_revs=all&attachments=true", CONTENT_ATTACHMENT, "}}}}]\n" },
	{ "/s/_all_docs?include_docs=true", CONTENT_DOCUMENTS, "\r\n]}\n" },
	{ "/s/_changes?include_docs=true", CONTENT_DOCUMENTS, "\"pending\":0}\n" },
	{ VIEW, CONTENT_VIEW, "\r\n]}\n" },
	{ VIEW "?include_docs=true", CONTENT_VIEW, "\r\n]}\n" },
	{ "/s/d?open_revs=all", CONTENT_BRANCHES, "]\n" },
};

static void
store_content(enum content content)
{
	door_create(d, "s");
	if (content == CONTENT_ATTACHMENT)
		store_attachment();
	else
		store_pieces(content == CONTENT_BRANCHES);
	if (content != CONTENT_VIEW)
		return;
	door_expect(d, "PUT", "/s/_design/v",
		    "{\"views\":{\"v\":{\"map\":\"(doc) => { emit(doc._id, doc.x); }\"}}}", 201,
		    "ok");
	door_expect(d, "GET", VIEW "?limit=1", NULL, 200, "rows");
}

static void
delete_database(const struct answer *answer)
{
	(void)answer;
	door_expect(d, "DELETE", "/s", NULL, 200, "ok");
}

/* Another one of the same name, with the same in it. */
static void
replace_database(const struct answer *answer)
{
	delete_database(answer);
	store_content(answer->content);
}

static void
purge_documents(const struct answer *answer)
{
	const char *rev;

	if (answer->content == CONTENT_ATTACHMENT) {
		door_expect(d, "GET", "/s/d", NULL, 200, "_rev");
		rev = door_member(d, "_rev");
		door_expect(d, "POST", "/s/_purge", format("{\"d\":[\"%s\"]}", rev), 201, rev);
		return;
	}
	for (int i = 0; i < PIECES; i++)
		door_expect(d, "POST", "/s/_purge",
			    answer->content == CONTENT_BRANCHES
				    ? format("{\"d\":[\"1-%02d\"]}", i)
				    : format("{\"d%02d\":[\"1-%02d\"]}", i, i),
			    201, "purged");
}

static void
wait_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

/*
 * Asks, does not read, lets something happen, and reads. True if the answer was whole; it is one to
 * the last byte then.
 */
static bool
answer_is_whole(const struct answer *answer, void (*happen)(const struct answer *answer))
{
	struct client *c = client_open_narrow(d->port);
	struct response r;
	bool whole;

	client_send(c, "GET", answer->path, "Accept: application/json, image/png\r\n", NULL);
	wait_ms(STALL_MS);
	happen(answer);
	r = client_receive_or_end(c, false);
	whole = !r.broken;
	if (whole) {
		size_t end = strlen(answer->end);

		assert_int_equal(r.status, 200);
		assert_true(r.body_len >= end);
		assert_string_equal(r.body + r.body_len - end, answer->end);
	}
	if (whole && answer->content == CONTENT_ATTACHMENT)
		assert_true(r.body_len >= ANSWER_BYTES);
	response_release(&r);
	client_close(c);
	door_expect(d, "GET", "/", NULL, 200, "Welcome");
	return whole;
}

static void
check_all(void (*happen)(const struct answer *answer), bool may_be_whole)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		bool whole;

		if (answers[i].content == CONTENT_VIEW && !getenv("FROND_JS_WORKER"))
			continue;
		store_content(answers[i].content);
		whole = answer_is_whole(&answers[i], happen);
		if (whole && !may_be_whole)
			fail_msg("%s: the answer seems to be whole", answers[i].path);
		if (happen != delete_database)
			delete_database(&answers[i]);
	}
}

static void
a_database_that_is_deleted_cuts_what_is_read_of_it(void **state)
{
	(void)state;
	check_all(delete_database, false);
}

static void
a_database_that_is_replaced_cuts_what_is_read_of_the_one_before(void **state)
{
	(void)state;
	check_all(replace_database, false);
}

/* A list goes on without what was purged. An attachment whose data is gone cannot. */
static void
documents_that_are_purged_leave_no_answer_that_seems_whole(void **state)
{
	(void)state;
	check_all(purge_documents, true);
}

static int log_file = -1;
static int stderr_before = -1;

static bool
log_has(const char *part)
{
	char *text = test_malloc(LOG_BYTES);
	ssize_t n;
	bool has;

	(void)fflush(stderr);
	n = pread(log_file, text, LOG_BYTES - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	has = strstr(text, part);
	test_free(text);
	return has;
}

static int
setup_log(void **state)
{
	char path[] = "/tmp/frond-stalled-XXXXXX";

	(void)state;
	log_file = mkstemp(path);
	assert_true(log_file >= 0);
	(void)unlink(path);
	(void)fflush(stderr);
	stderr_before = dup(STDERR_FILENO);
	return dup2(log_file, STDERR_FILENO) == STDERR_FILENO ? 0 : -1;
}

static int
teardown_log(void **state)
{
	(void)state;
	(void)fflush(stderr);
	if (dup2(stderr_before, STDERR_FILENO) != STDERR_FILENO)
		return -1;
	(void)close(stderr_before);
	(void)close(log_file);
	return 0;
}

/* It runs first: the log has one line in ten seconds of each status. */
static void
an_attachment_that_goes_with_its_database_is_told_as_deleted(void **state)
{
	(void)state;
	store_content(CONTENT_ATTACHMENT);
	assert_false(answer_is_whole(&answers[0], delete_database));
	assert_true(log_has("event=answer_cut status=deleted code=404 reason=\"the database was"));
	assert_false(log_has("status=corrupt"));
}

static void
an_attachment_that_is_purged_is_not_told_as_damage(void **state)
{
	(void)state;
	store_content(CONTENT_ATTACHMENT);
	assert_false(answer_is_whole(&answers[0], purge_documents));
	assert_false(log_has("status=corrupt"));
	delete_database(&answers[0]);
}

/* ---- Events of databases ---- */

/* The i-th database of those that there are only events of. */
static struct str
event_name(int i)
{
	static char name[EVENT_NAME_BYTES + 1];

	(void)snprintf(name, sizeof(name), "e%0*d", EVENT_NAME_BYTES - 1, i);
	return str_of(name, EVENT_NAME_BYTES);
}

/* As if by so many transactions: each event has a stamp, which a feed goes on behind. */
static enum status
put_events(struct kv_tx *tx, void *arg)
{
	const int *from = arg;

	for (int i = *from; i < *from + EVENTS_AT_ONCE && i < EVENTS; i++) {
		const struct catalog_kind *kind = catalog_kind_at(0);
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf value = BUF_INIT(64);
		size_t at = catalog_event_record_put(CATALOG_EVENT_CREATED, 0, kind, &value);

		catalog_key_name(&key, KV_ROOT_EVENTS, kind->space, event_name(i));
		memset(value.ptr + at, 0, KV_VERSIONSTAMP_TX_BYTES);
		value.ptr[at + KV_VERSIONSTAMP_TX_BYTES - 2] = (uint8_t)((i + 1) >> 8);
		value.ptr[at + KV_VERSIONSTAMP_TX_BYTES - 1] = (uint8_t)(i + 1);
		TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	}
	return STATUS_OK;
}

static enum status
put_deletion(struct kv_tx *tx, void *arg)
{
	const int *i = arg;

	return catalog_event_put(tx, catalog_kind_at(0), event_name(*i), CATALOG_EVENT_DELETED, 0);
}

static int
snapshots_held(void)
{
	static const char name[] = "\nfrond_store_snapshots ";
	const char *at;

	door_expect(d, "GET", "/_node/_local/_prometheus", NULL, 200, name);
	at = strstr(d->last.body, name);
	return atoi(at + strlen(name));
}

/* A snapshot of before the last write is held by nobody but a reader. */
static void
wait_for_snapshots(int n)
{
	uint64_t end = clock_after_ms(PATIENCE_MS);

	while (snapshots_held() > n) {
		if (clock_mono_ns() > end)
			fail_msg("the feed still holds its snapshot");
		door_expect(d, "POST", "/s", "{}", 201, "ok");
		wait_ms(10);
	}
}

/*
 * A feed of databases holds no snapshot while its client does not read. What it sends afterwards is
 * as things are then.
 */
static void
a_stalled_feed_of_databases_holds_nothing(void **state)
{
	static const char *const feeds[] = { "normal", "continuous&timeout=1000" };
	int before, last = EVENTS - 1;

	(void)state;
	door_create(d, "s");
	for (int i = 0; i < EVENTS; i += EVENTS_AT_ONCE)
		assert_int_equal(kv_run(d->store, put_events, &i, NULL, NULL), STATUS_OK);
	door_expect(d, "PUT", "/s/d", "{}", 201, "ok");
	before = snapshots_held();
	for (size_t i = 0; i < sizeof(feeds) / sizeof(feeds[0]); i++) {
		struct client *c = client_open_narrow(d->port);
		struct response r;

		client_send(c, "GET", format("/_db_updates?feed=%s", feeds[i]),
			    "Accept: application/json\r\n", NULL);
		wait_ms(STALL_MS);
		wait_for_snapshots(before);
		last--;
		assert_int_equal(kv_run(d->store, put_deletion, &last, NULL, NULL), STATUS_OK);
		r = client_receive(c, false);
		assert_false(r.broken);
		for (int k = 0; k < EVENTS; k++) {
			const char *type = k < last || k == EVENTS - 1 ? "created" : "deleted";
			struct str name = event_name(k);
			const char *row = format("{\"db_name\":\"%.*s\",\"type\":\"%s\"",
						 STR_ARG(name), type);

			if (k > EVENTS - 10 && !strstr(r.body, row))
				fail_msg("no row %s", row);
		}
		response_release(&r);
		client_close(c);
	}
}

/* As the last of all: from then on there is an administrator, and nobody else is one. */
static void
the_backlog_of_a_feed_of_databases_ends_with_the_right(void **state)
{
	static const char *const feeds[] = { "normal", "normal&descending=true", "continuous",
					     "longpoll", "eventsource" };
	enum {
		COUNT = sizeof(feeds) / sizeof(feeds[0]),
	};
	struct client *clients[COUNT];

	(void)state;
	for (int i = 0; i < EVENTS; i += EVENTS_AT_ONCE)
		assert_int_equal(kv_run(d->store, put_events, &i, NULL, NULL), STATUS_OK);
	for (size_t i = 0; i < COUNT; i++) {
		clients[i] = client_open_narrow(d->port);
		client_send(clients[i], "GET", format("/_db_updates?feed=%s", feeds[i]),
			    "Accept: application/json\r\n", NULL);
	}
	wait_ms(STALL_MS);
	door_expect(d, "PUT", "/_node/_local/_config/admins/anna", "\"apple\"", 200, "");
	/* Each has begun more than a second ago when it is read on. */
	wait_ms(1500);
	for (size_t i = 0; i < COUNT; i++) {
		const char *descending = strstr(feeds[i], "descending");
		struct response r = client_receive(clients[i], false);
		struct str last = event_name(descending ? 0 : EVENTS - 1);

		if (strstr(r.body, format("\"%.*s\"", STR_ARG(last))))
			fail_msg("%s: the backlog was sent to its end", feeds[i]);
		response_release(&r);
		client_close(clients[i]);
	}
}

/* ---- Functions that take long ---- */

/*
 * True if no snapshot was held for a moment while the answer to `client`, which needs SLOW_MS from
 * `begun_ns` on at least, was being made. False also if this program was too slow to see.
 */
static bool
sees_no_snapshot(uint64_t begun_ns, int before)
{
	bool held = false;

	while (clock_mono_ns() - begun_ns < (uint64_t)SLOW_MS * 1000000) {
		int now = snapshots_held();

		if (held && now <= before)
			return clock_mono_ns() - begun_ns < (uint64_t)SLOW_MS * 1000000;
		held |= now > before;
		/* What other readers have seen last is not kept on their behalf. */
		if (held)
			door_expect(d, "POST", "/s", "{}", 201, "ok");
		wait_ms(5);
	}
	return false;
}

/* A reduce of a query that takes long holds no snapshot, and its answer goes on in another one. */
static void
a_slow_reduce_holds_no_snapshot(void **state)
{
	bool seen = false;

	(void)state;
	if (!getenv("FROND_JS_WORKER"))
		skip();
	door_expect(d, "DELETE", "/s", NULL, 200, "ok");
	door_create(d, "s");
	door_expect(d, "PUT", "/s/_design/d",
		    format("{\"views\":{\"v\":{\"map\":\"function (doc) { if (doc.n) "
			   "for (let i = 0; i < 150; i++) emit(i, doc.n) }\",\"reduce\":"
			   "\"function (k, v, again) { const end = Date.now() + %d; "
			   "if (v[0] === 2 && k && k[0][0] === 1 && v.length === 1) "
			   "while (Date.now() < end); return sum(v) }\"}}}",
			   SLOW_MS),
		    201, "ok");
	door_expect(d, "PUT", "/s/n", "{\"n\":2}", 201, "ok");
	door_expect(d, "GET", "/s/_design/d/_view/v?reduce=false&limit=0", NULL, 200, "rows");
	for (int tries = 0; tries < 10 && !seen; tries++) {
		struct client *c = client_open_narrow(d->port);
		uint64_t begun_ns;
		struct response r;
		int before;

		/* What readers begin with now is a snapshot of its own. */
		door_expect(d, "POST", "/s", "{}", 201, "ok");
		before = snapshots_held();
		begun_ns = clock_mono_ns();
		client_send(c, "GET", "/s/_design/d/_view/v?group=true&update=false",
			    "Accept: application/json\r\n", NULL);
		seen = sees_no_snapshot(begun_ns, before);
		r = client_receive(c, false);
		assert_int_equal(r.status, 200);
		assert_false(r.broken);
		assert_non_null(strstr(r.body, "{\"key\":1,\"value\":2}"));
		assert_non_null(strstr(r.body, "{\"key\":149,\"value\":2}\r\n]}"));
		response_release(&r);
		client_close(c);
	}
	assert_true(seen);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_attachment_that_goes_with_its_database_is_told_as_deleted, setup_log,
			teardown_log),
		cmocka_unit_test_setup_teardown(an_attachment_that_is_purged_is_not_told_as_damage,
						setup_log, teardown_log),
		cmocka_unit_test(a_database_that_is_deleted_cuts_what_is_read_of_it),
		cmocka_unit_test(a_database_that_is_replaced_cuts_what_is_read_of_the_one_before),
		cmocka_unit_test(documents_that_are_purged_leave_no_answer_that_seems_whole),
		cmocka_unit_test(a_stalled_feed_of_databases_holds_nothing),
		cmocka_unit_test(a_slow_reduce_holds_no_snapshot),
		cmocka_unit_test(the_backlog_of_a_feed_of_databases_ends_with_the_right),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
