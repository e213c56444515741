/* Requests that somebody else than their client ends. */
#include "fixture.h"

#include <unistd.h>

#include "base/clock.h"
#include "loop/step.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

enum {
	LOOKS = 5000, /* of a millisecond, until a test gives up */
};

static struct http_exchange *_Atomic running; /* whose handler has begun */
static _Atomic int outcome;                   /* the status that it has ended with; -1: none yet */

/* Computes until that fails. */
static enum status
compute(void)
{
	enum status s;

	do
		s = step_count(1);
	while (s == STATUS_OK);
	return s;
}

/* Waits for its client to read. */
static enum status
flood(struct http_exchange *x)
{
	static const char zeros[10000];
	enum status s = http_start(x, HTTP_LENGTH_UNKNOWN);

	while (s == STATUS_OK)
		s = http_write(x, str_of(zeros, sizeof(zeros)));
	return s;
}

static void
handle(struct http_exchange *x, void *arg)
{
	struct str path = http_path(x);
	enum status s = STATUS_OK;
	struct str part;

	(void)arg;
	atomic_store(&running, x);
	if (str_eq(path, STR("/compute")))
		s = compute();
	else if (str_eq(path, STR("/flood")))
		s = flood(x);
	else if (str_eq(path, STR("/wait")))
		s = event_wait(http_closed_event(x), clock_after_ms(LOOKS)) ? STATUS_CANCELLED
									    : STATUS_TIMEOUT;
	else if (str_eq(path, STR("/read")))
		while ((s = http_read(x, &part)) == STATUS_OK)
			;
	atomic_store(&outcome, (int)s);
	if (http_started(x) ||
	    http_send(x, http_is_interrupted(x) ? STR("interrupted") : STR("not")) != STATUS_OK)
		http_abort(x);
}

static void
begin(struct fixture *f, struct client *c)
{
	fixture_start(f, NULL, handle);
	client_open(c, f);
}

static void
end(struct fixture *f, struct client *c)
{
	client_close(c);
	fixture_stop(f);
}

/* Sends a request, and interrupts it when its handler runs. */
static void
interrupt(struct client *c, const char *request)
{
	atomic_store(&running, NULL);
	atomic_store(&outcome, -1);
	assert_true(client_send_cstr(c, request));
	for (int i = 0; i < LOOKS && !atomic_load(&running); i++)
		usleep(1000);
	/* Mostly it waits by now; where it does not yet, the interruption has to be found then. */
	usleep(20 * 1000);
	http_interrupt(running);
	for (int i = 0; i < LOOKS && atomic_load(&outcome) < 0; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&outcome), STATUS_CANCELLED);
}

static void
what_computes_or_waits_ends_and_may_answer(void **state)
{
	static const char *const requests[] = { GET("/compute"), GET("/wait") };
	struct answer a = { 0 };
	struct fixture f;
	struct client c;

	(void)state;
	begin(&f, &c);
	for (size_t i = 0; i < 2; i++) {
		interrupt(&c, requests[i]);
		client_answer(&c, &a, false);
		assert_true(a.whole);
		assert_memory_equal(a.body.ptr, "interrupted", 11);
		/* The next request of the connection is not concerned. */
		client_ask(&c, GET("/"), &a, 200);
		assert_memory_equal(a.body.ptr, "not", 3);
	}
	answer_release(&a);
	end(&f, &c);
}

static void
what_waits_for_its_client_loses_the_connection(void **state)
{
	static const char *const requests[] = {
		GET("/flood"), "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture f;
		struct client c;

		begin(&f, &c);
		interrupt(&c, requests[i]);
		end(&f, &c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_computes_or_waits_ends_and_may_answer),
		cmocka_unit_test(what_waits_for_its_client_loses_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
