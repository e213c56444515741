/* What has come and is not read yet counts in the memory that all requests share. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "loop/wait.h"
#include "net/host.h"

enum {
	LIMIT_BYTES = 8 << 20,
	MOST = 200,
	LATE_MS = 1000,
	BODIES = 150,
	BODY_BYTES = 100000,
	FEW = 10,
	HEAD_BYTES = 50000,
	READS_BYTES = 256 * 1024, /* that may come on top of what is looked at */
};

static struct client clients[MOST];

/* Does not read what comes with the request, for a while. */
static void
handle(struct http_exchange *x, void *arg)
{
	struct event never;

	(void)arg;
	event_init(&never);
	if (str_eq(http_path(x), STR("/late")))
		(void)event_wait(&never, clock_after_ms(LATE_MS));
	if (http_send(x, STR("hello")) != STATUS_OK)
		http_abort(x);
}

static void
send_letters(struct client *c, size_t n)
{
	char *letters = mem_alloc(n);

	assert_non_null(letters);
	memset(letters, 'v', n);
	(void)client_send(c, str_of(letters, n));
	mem_free(letters);
}

static size_t
taken(const struct fixture *f)
{
	return net_host_take_memory_peak(server_host(f->server));
}

static void
all_leave(struct fixture *f, size_t count)
{
	size_t left = 1;

	for (size_t i = 0; i < count; i++)
		client_close(&clients[i]);
	for (int k = 0; k < 5000 && left; k++) {
		usleep(1000);
		left = taken(f);
	}
	assert_int_equal(left, 0);
	fixture_stop(f);
}

/* It cannot be refused, so the more of it there is, the less is read of each further client. */
static void
bodies_that_come_before_they_are_read_are_counted(void **state)
{
	const struct server_config config = { .memory_bytes = LIMIT_BYTES };
	struct fixture f;
	size_t few = 0;

	(void)state;
	fixture_start(&f, &config, handle);
	for (size_t i = 0; i < BODIES; i++) {
		client_open(&clients[i], &f);
		client_send_cstr(&clients[i], "POST /late HTTP/1.1\r\nHost: x\r\n"
					      "Content-Length: 100000\r\n\r\n");
		send_letters(&clients[i], BODY_BYTES);
		if (i + 1 != FEW)
			continue;
		for (int k = 0; k < 5000 && few < (size_t)FEW * BODY_BYTES; k++) {
			usleep(1000);
			few = taken(&f);
		}
		assert_true(few >= (size_t)FEW * BODY_BYTES);
	}
	assert_true(taken(&f) <= LIMIT_BYTES + LIMIT_BYTES / 4);
	all_leave(&f, BODIES);
}

/* Nobody can read a head before it is whole, so long ones go, and short ones are answered. */
static void
heads_that_do_not_end_leave_a_quarter_to_others(void **state)
{
	const struct server_config config = { .memory_bytes = LIMIT_BYTES };
	struct answer a = { 0 };
	struct client other;
	struct fixture f;
	size_t peak;

	(void)state;
	fixture_start(&f, &config, handle);
	for (size_t i = 0; i < MOST; i++) {
		client_open(&clients[i], &f);
		client_send_cstr(&clients[i], "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ");
		send_letters(&clients[i], HEAD_BYTES);
	}
	client_answer(&clients[MOST - 1], &a, false);
	assert_int_equal(a.status, 503);
	assert_true(a.close);
	client_open(&other, &f);
	client_ask(&other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", &a, 200);
	client_close(&other);
	peak = taken(&f);
	assert_true(peak > LIMIT_BYTES / 2 && peak <= LIMIT_BYTES / 4 * 3 + READS_BYTES);
	answer_release(&a);
	all_leave(&f, MOST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_that_come_before_they_are_read_are_counted),
		cmocka_unit_test(heads_that_do_not_end_leave_a_quarter_to_others),
	};

	return cmocka_run_group_tests_name("http_input", tests, NULL, NULL);
}
