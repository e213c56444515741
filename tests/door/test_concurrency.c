/* Many connections at once: what one is told holds for the others. */
#include "common.h"

#include <pthread.h>

enum {
	WRITERS = 4,
	ROUNDS = 60,
};

struct writer {
	pthread_t thread;
	int number;
	int written; /* edits that were accepted */
	bool failed;
};

static struct response
call(struct client *c, const char *method, const char *target, const char *body)
{
	client_send(c, method, target, "Content-Type: application/json\r\n", body);
	return client_receive(c, false);
}

/* Reads a document and writes it back with one added, over and over: some of it in vain. */
static void *
count_up(void *arg)
{
	struct writer *w = arg;
	struct client *c = client_open(d->port);

	for (int i = 0; i < ROUNDS; i++) {
		struct response r = call(c, "GET", "/race/counter", NULL);
		const char *n = strstr(r.body, "\"n\":");
		const char *rev = strstr(r.body, "\"_rev\":\"");
		char body[256];

		if (!n || !rev) {
			w->failed = true;
			response_release(&r);
			break;
		}
		(void)snprintf(body, sizeof(body), "{\"_rev\":\"%.*s\",\"n\":%d}",
			       (int)strcspn(rev + 8, "\""), rev + 8, atoi(n + 4) + 1);
		response_release(&r);
		r = call(c, "PUT", "/race/counter", body);
		if (r.status == 201)
			w->written++;
		else if (r.status != 409)
			w->failed = true;
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

static void
every_accepted_edit_counts_once(void **state)
{
	struct writer writers[WRITERS] = { 0 };
	int written = 0;

	(void)state;
	door_create(d, "race");
	door_expect(d, "PUT", "/race/counter", "{\"n\":0}", 201, "ok");
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i].thread, NULL, count_up, &writers[i]),
				 0);
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_false(writers[i].failed);
		written += writers[i].written;
	}
	assert_true(written >= ROUNDS);
	door_expect(d, "GET", "/race/counter", NULL, 200, format("\"n\":%d}", written));
	door_has(d, format("\"_rev\":\"%d-", written + 1));
	door_expect(d, "GET", "/race", NULL, 200, "\"doc_count\":1,");
}

static void *
write_bulk(void *arg)
{
	struct writer *w = arg;
	struct client *c = client_open(d->port);

	for (int i = 0; i < ROUNDS; i++) {
		char body[256];
		struct response r;

		(void)snprintf(body, sizeof(body),
			       "{\"docs\":[{\"_id\":\"%d-%d-a\"},{\"_id\":\"%d-%d-b\"}]}",
			       w->number, i, w->number, i);
		r = call(c, "POST", "/busy/_bulk_docs", body);
		if (r.status != 201 || strstr(r.body, "error"))
			w->failed = true;
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

/* A listener that starts while others write hears of each document, whoever wrote it, once. */
static void
feeds_hear_every_writer(void **state)
{
	enum {
		FEEDS = 3,
		DOCS = WRITERS * ROUNDS * 2
	};
	struct writer writers[WRITERS] = { 0 };
	struct client *feeds[FEEDS];

	(void)state;
	door_create(d, "busy");
	for (int i = 0; i < FEEDS; i++) {
		feeds[i] = client_open(d->port);
		client_send(feeds[i], "GET", "/busy/_changes?feed=continuous&heartbeat=1000", NULL,
			    NULL);
	}
	for (int i = 0; i < WRITERS; i++) {
		writers[i].number = i;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_bulk, &writers[i]),
				 0);
	}
	for (int i = 0; i < FEEDS; i++) {
		static char seen[WRITERS][ROUNDS][2];
		struct response head = client_receive_head(feeds[i]);
		int count = 0;

		assert_int_equal(head.status, 200);
		response_release(&head);
		memset(seen, 0, sizeof(seen));
		while (count < DOCS) {
			const char *line = client_line(feeds[i], 20000);
			const char *id;
			char kind;
			int writer;
			int round;

			assert_non_null(line);
			if (!line[0])
				continue;
			id = strstr(line, "\"id\":\"");
			assert_non_null(id);
			assert_int_equal(sscanf(id + 6, "%d-%d-%c", &writer, &round, &kind), 3);
			assert_false(seen[writer][round][kind - 'a']);
			seen[writer][round][kind - 'a'] = 1;
			count++;
		}
		client_close(feeds[i]);
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_false(writers[i].failed);
	}
}

static void *
remake(void *arg)
{
	struct writer *w = arg;
	struct client *c = client_open(d->port);

	for (int i = 0; i < ROUNDS / 2; i++) {
		struct response r = call(c, "DELETE", "/flip", NULL);

		w->failed = w->failed || r.status != 200;
		response_release(&r);
		r = call(c, "PUT", "/flip", NULL);
		w->failed = w->failed || r.status != 201;
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

static void *
use_flipping(void *arg)
{
	struct writer *w = arg;
	struct client *c = client_open(d->port);

	for (int i = 0; i < ROUNDS; i++) {
		char target[64];
		struct response r;

		(void)snprintf(target, sizeof(target), "/flip/%d-%d", w->number, i);
		r = call(c, "PUT", target, "{}");
		if (r.status != 201 && r.status != 404)
			w->failed = true;
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

/* No write may end up in a database that is gone: what is listed is what can be read. */
static void
a_database_made_anew_begins_empty(void **state)
{
	struct writer maker = { 0 };
	struct writer writers[WRITERS] = { 0 };

	(void)state;
	door_create(d, "flip");
	for (int i = 0; i < WRITERS; i++) {
		writers[i].number = i;
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, use_flipping, &writers[i]), 0);
	}
	assert_int_equal(pthread_create(&maker.thread, NULL, remake, &maker), 0);
	assert_int_equal(pthread_join(maker.thread, NULL), 0);
	assert_false(maker.failed);
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_false(writers[i].failed);
	}
	door_expect(d, "DELETE", "/flip", NULL, 200, "ok");
	door_expect(d, "PUT", "/flip", NULL, 201, "ok");
	for (int i = 0; i < 4; i++) {
		/* Over connections of either loop. */
		struct client *c = client_open(d->port);
		struct response r = call(c, "GET", "/flip/_all_docs", NULL);

		assert_non_null(strstr(r.body, "\"total_rows\":0,"));
		response_release(&r);
		client_close(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_accepted_edit_counts_once),
		cmocka_unit_test(feeds_hear_every_writer),
		cmocka_unit_test(a_database_made_anew_begins_empty),
	};

	return cmocka_run_group_tests_name("couch concurrency", tests, setup, teardown);
}
