/* The line echo with TLS over streams that delay, cut and break, on a twin: many seeds. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "certs.h"
#include "echo.h"
#include "net/host.h"
#include "net/stream.h"
#include "net/tls.h"
#include "twin.h"

enum {
	SEEDS = 100,
	PORT = 7,
	CLIENTS = 4,
	LINES = 400,
	LINE_BYTES = 200,
	LONG_MS = 1000 * 1000,
	STALL_MS = 2000,
	DRAIN_MS = 20000,
};

static char path[] = "/tmp/frond-tls-twin-XXXXXX";
static struct tls_settings settings = {
	.versions = "tlsv1.2,tlsv1.3",
	.handshake_timeout_ms = LONG_MS,
	.cert_file = path,
};
static struct net_host *host;
static unsigned clients;

/* ---- A client ---- */

struct talk {
	struct twin_client *c;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in;
	BIO *out;
	char text[LINES * LINE_BYTES];
	size_t len;
	size_t back; /* of them, bytes that came back */
	bool whole;  /* the server has said that nothing follows */
	struct event over;
};

/* Sends what OpenSSL has made. */
static bool
talk_push(struct talk *t)
{
	char some[4096];
	int n;

	while ((n = BIO_read(t->out, some, sizeof(some))) > 0)
		if (!twin_send(t->c, str_of(some, (size_t)n)))
			return false;
	return true;
}

static bool
talk_pull(struct talk *t)
{
	char some[4096];
	size_t n;

	if (twin_receive(t->c, some, 1 + twin_draw(sizeof(some) - 1), &n, WAIT_FOREVER) !=
	    TWIN_GOT_BYTES)
		return false;
	return BIO_write(t->in, some, (int)n) == (int)n;
}

static bool
talk_shake_hands(struct talk *t)
{
	int done;

	for (;;) {
		ERR_clear_error();
		done = SSL_do_handshake(t->ssl);
		if (!talk_push(t))
			return false;
		if (done == 1)
			return true;
		if (SSL_get_error(t->ssl, done) != SSL_ERROR_WANT_READ || !talk_pull(t))
			return false;
	}
}

static struct talk *
talk_new(enum twin_way way)
{
	struct talk *t = mem_zalloc(sizeof(*t));
	bool old = twin_chance(50);

	event_init(&t->over);
	t->ctx = SSL_CTX_new(TLS_client_method());
	if (old)
		SSL_CTX_set_max_proto_version(t->ctx, TLS1_2_VERSION);
	t->ssl = SSL_new(t->ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	SSL_set_bio(t->ssl, t->in, t->out);
	SSL_set_connect_state(t->ssl);
	for (unsigned i = 0; i < LINES; i++) {
		for (size_t k = twin_draw(LINE_BYTES - 1); k; k--)
			t->text[t->len++] = (char)('A' + twin_draw(26));
		t->text[t->len++] = '\n';
	}
	t->c = twin_connect(PORT, way);
	return t;
}

static void
talk_end(struct talk *t, bool reset)
{
	twin_close(t->c, reset);
	SSL_free(t->ssl);
	SSL_CTX_free(t->ctx);
	mem_free(t);
	if (--clients == 0)
		net_host_stop(host);
}

/* Takes in what comes and compares it, up to the end. */
static void
talk_read(void *arg)
{
	struct talk *t = arg;
	bool slow = twin_chance(20);
	char some[3000];
	int n;

	for (;;) {
		ERR_clear_error();
		n = SSL_read(t->ssl, some, 1 + (int)twin_draw(sizeof(some) - 1));
		if (n > 0) {
			twin_check(t->back + (size_t)n <= t->len);
			twin_check(memcmp(some, t->text + t->back, (size_t)n) == 0);
			t->back += (size_t)n;
			if (slow)
				twin_sleep_ms(twin_draw(STALL_MS / 20));
			continue;
		}
		t->whole = SSL_get_error(t->ssl, n) == SSL_ERROR_ZERO_RETURN;
		if (t->whole || SSL_get_error(t->ssl, n) != SSL_ERROR_WANT_READ || !talk_pull(t))
			break;
	}
	event_set(&t->over);
}

/* Sends all lines but those behind `most` bytes. */
static bool
talk_send(struct talk *t, size_t most)
{
	size_t sent = 0;

	while (sent < most) {
		size_t n = 1 + twin_draw(twin_chance(50) ? 200 : 20000);

		n = n < most - sent ? n : most - sent;
		ERR_clear_error();
		if (SSL_write(t->ssl, t->text + sent, (int)n) != (int)n || !talk_push(t))
			return false;
		sent += n;
		if (twin_chance(5))
			twin_sleep_ms(twin_draw(100));
	}
	return true;
}

/* ---- What clients do ---- */

/* All comes back, whole, and then the end. */
static void
polite(void *arg)
{
	struct talk *t = talk_new(TWIN_WAY_SHORT);

	(void)arg;
	twin_check(talk_shake_hands(t));
	twin_script(talk_read, t);
	twin_check(talk_send(t, t->len));
	twin_check(SSL_shutdown(t->ssl) >= 0 && talk_push(t));
	if (twin_chance(50))
		twin_shutdown(t->c);
	event_wait(&t->over, WAIT_FOREVER);
	twin_check(t->whole && t->back == t->len);
	talk_end(t, false);
}

/* Leaves at any moment, during the handshake too. */
static void
rude(void *arg)
{
	struct talk *t = talk_new(TWIN_WAY_ANY);
	bool hurried = twin_chance(30);

	(void)arg;
	if (hurried) {
		ERR_clear_error();
		(void)SSL_do_handshake(t->ssl);
		(void)talk_push(t);
		twin_sleep_ms(twin_draw(50));
	} else if (talk_shake_hands(t)) {
		(void)talk_send(t, twin_draw(t->len));
		twin_sleep_ms(twin_draw(50));
	}
	talk_end(t, twin_chance(70));
}

/* Sends, and reads nothing: it is cut off. */
static void
deaf(void *arg)
{
	struct talk *t = talk_new(TWIN_WAY_SHORT);

	(void)arg;
	twin_check(talk_shake_hands(t));
	while (talk_send(t, t->len))
		;
	talk_end(t, false);
}

static void
anybody(void *arg)
{
	if (twin_chance(60))
		polite(arg);
	else
		rude(arg);
}

static void
play(unsigned count, void (*script)(void *arg))
{
	static struct net_stream_options options;
	const struct net_host_config config = {
		.loops = 1,
		.io = &twin_io,
		.max_connections = 100,
		.drain_timeout_ms = DRAIN_MS,
		.min_rate_bytes = 1,
		.idle_timeout_ms = LONG_MS,
		.stall_timeout_ms = STALL_MS,
		.request_bytes = 1024 * 1024,
	};
	struct net_tls *tls;
	struct err err = { 0 };
	unsigned plain;
	unsigned secure;

	options = (struct net_stream_options){
		.serve = echo_serve,
		.input_bytes = 512 + twin_draw(4096),
		.output_bytes = 512 + twin_draw(40000),
	};
	twin_check(net_tls_new(&settings, &tls, &err) == STATUS_OK);
	twin_check(net_host_new(&config, &host, &err) == STATUS_OK);
	twin_check(net_host_add_service(host, &net_stream_protocol, &options, &plain, &err) ==
		   STATUS_OK);
	twin_check(net_host_secure(host, plain, tls, &secure, &err) == STATUS_OK);
	twin_check(net_host_listen(host, secure, "twin:7", NULL, &err) == STATUS_OK);
	clients = count;
	for (unsigned i = 0; i < count; i++)
		twin_script(script, NULL);
	twin_check(net_host_run(host, &err) == STATUS_OK);
	twin_settle();
	twin_check(net_host_stats(host).connections == 0);
	twin_check(net_host_free(host));
	net_tls_free(tls);
}

static void
play_polite(void)
{
	play(1 + (unsigned)twin_draw(CLIENTS), polite);
}

static void
play_mixed(void)
{
	play(1 + (unsigned)twin_draw(CLIENTS), anybody);
}

static void
play_deaf(void)
{
	play(1 + (unsigned)twin_draw(2), deaf);
}

/* ---- Tests ---- */

static void
lines_come_back_whole_and_in_order(void **state)
{
	(void)state;
	twin_run_seeds(play_polite, SEEDS);
}

static void
clients_that_leave_harm_no_others(void **state)
{
	(void)state;
	twin_run_seeds(play_mixed, SEEDS);
}

static void
a_client_that_never_reads_is_cut_off(void **state)
{
	(void)state;
	twin_run_seeds(play_deaf, SEEDS / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_back_whole_and_in_order),
		cmocka_unit_test(clients_that_leave_harm_no_others),
		cmocka_unit_test(a_client_that_never_reads_is_cut_off),
	};
	struct cert cert;
	int failed;

	close(mkstemp(path));
	cert_make(&cert, CERT_P256, "DNS:localhost", NULL);
	cert_write(&cert, path, true, true, NULL);
	cert_free(&cert);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
