/*
 * Databases and documents that go while a client has stopped reading: the answer under way ends as
 * what it is, cut or whole, and the server goes on.
 */
#include <time.h>

#include "base/buf.h"
#include "common.h"

enum {
	ANSWER_BYTES = 14 << 20, /* more than both ends of a connection hold */
	PIECE_BYTES = 500000,
	PIECES = ANSWER_BYTES / PIECE_BYTES,
	STALL_MS = 300,
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
	struct client *c = client_open(d->port);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_database_that_is_deleted_cuts_what_is_read_of_it),
		cmocka_unit_test(a_database_that_is_replaced_cuts_what_is_read_of_the_one_before),
		cmocka_unit_test(documents_that_are_purged_leave_no_answer_that_seems_whole),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
