/* TLS in front of HTTP and of a line echo, with clients of OpenSSL's over real sockets. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../http/fixture.h"
#include "base/clock.h"
#include "base/metric.h"
#include "certs.h"
#include "echo.h"
#include "net/stream.h"
#include "net/tls.h"

enum {
	BIG_BYTES = 3 * 1000 * 1000,
	HALF_OPEN = 100,
	SHORT_MS = 150,
	TIMES = 200,
	RESUMED = 1, /* a series of frond_tls_handshakes_total */
};

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

static enum cert_kind kind;
static char dir[] = "/tmp/frond-tls-XXXXXX";

/* A path in the directory of the test; a few are valid at a time. */
static const char *
file(const char *name)
{
	static char paths[16][64];
	static unsigned next;
	char *path = paths[next++ % 16];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* ---- The server ---- */

struct secure {
	struct tls_settings settings;
	struct fixture http;
	struct net_stream_options echo;
	struct net_tls *tls;
	uint16_t port;
	uint16_t echo_port;
};

static void
hello(struct http_exchange *x, void *arg)
{
	(void)arg;
	if (str_eq(http_target(x), STR("/big"))) {
		struct buf AUTO(buf_release) big = BUF_INIT(BIG_BYTES);

		for (size_t i = 0; i < BIG_BYTES; i++)
			buf_append_byte(&big, (char)('a' + i % 23));
		(void)!http_send(x, buf_str(&big)); /* its client may leave */
		return;
	}
	assert_int_equal(http_send(x, STR("hello\n")), STATUS_OK);
}

static void
settle(struct secure *s)
{
	if (!s->settings.versions)
		s->settings.versions = "tlsv1.2, tlsv1.3";
	if (!s->settings.handshake_timeout_ms)
		s->settings.handshake_timeout_ms = 20000;
	if (!s->settings.cert_file) {
		s->settings.cert_file = strdup(file("cert.pem"));
		s->settings.key_file = strdup(file("key.pem"));
	}
}

static void
secure_start(struct secure *s, const struct server_config *config)
{
	struct server_config own = config ? *config : (struct server_config){ 0 };
	struct net_host *host;
	struct err err = { 0 };
	unsigned plain;
	unsigned secure;

	settle(s);
	assert_int_equal(net_tls_new(&s->settings, &s->tls, &err), STATUS_OK);
	fixture_make(&s->http, &own, hello);
	host = server_host(s->http.server);
	assert_int_equal(server_listen_tls(s->http.server, "127.0.0.1:0", s->tls, &s->port, &err),
			 STATUS_OK);
	s->echo.serve = echo_serve;
	s->echo.refusal = STR("too many\n");
	assert_int_equal(net_host_add_service(host, &net_stream_protocol, &s->echo, &plain, &err),
			 STATUS_OK);
	assert_int_equal(net_host_secure(host, plain, s->tls, &secure, &err), STATUS_OK);
	assert_int_equal(net_host_listen(host, secure, "127.0.0.1:0", &s->echo_port, &err),
			 STATUS_OK);
	fixture_run(&s->http);
}

static void
secure_stop(struct secure *s)
{
	fixture_stop(&s->http);
	net_tls_free(s->tls);
	free((void *)(uintptr_t)s->settings.cert_file);
	free((void *)(uintptr_t)s->settings.key_file);
}

static int64_t
handshakes(size_t result)
{
	const struct metric *m = metric_find("frond_tls_handshakes_total");
	int64_t value = 0;

	metric_hold();
	assert_true(metric_value(m, result, &value));
	metric_release();
	return value;
}

/* ---- A client ---- */

struct peer {
	struct client tcp;
	SSL_CTX *ctx;
	SSL *ssl;
	SSL_SESSION *session; /* the newest ticket */
};

struct how {
	int version;          /* 0: any */
	const char *host;     /* SNI */
	const char *alpn;     /* in wire form */
	SSL_SESSION *session; /* to resume */
	const char *own;      /* a file with a certificate and its key */
	int receive_bytes;
};

static int
on_session(SSL *ssl, SSL_SESSION *session)
{
	struct peer *p = SSL_get_app_data(ssl);

	SSL_SESSION_free(p->session);
	p->session = session;
	return 1;
}

/* Connects and shakes hands. False if that fails. */
static bool
peer_try(struct peer *p, uint16_t port, const struct how *how)
{
	const struct how none = { 0 };

	how = how ? how : &none;
	*p = (struct peer){ .ctx = SSL_CTX_new(TLS_client_method()) };
	client_open_port(&p->tcp, port, how->receive_bytes);
	SSL_CTX_set_session_cache_mode(p->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(p->ctx, on_session);
	SSL_CTX_set_security_level(p->ctx, 0);
	if (how->version) {
		SSL_CTX_set_min_proto_version(p->ctx, how->version);
		SSL_CTX_set_max_proto_version(p->ctx, how->version);
	}
	if (how->own) {
		assert_int_equal(SSL_CTX_use_certificate_chain_file(p->ctx, how->own), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(p->ctx, how->own, SSL_FILETYPE_PEM),
				 1);
	}
	p->ssl = SSL_new(p->ctx);
	SSL_set_app_data(p->ssl, p);
	if (how->host)
		SSL_ctrl(p->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			 (void *)(uintptr_t)how->host);
	if (how->alpn)
		SSL_set_alpn_protos(p->ssl, (const unsigned char *)how->alpn,
				    (unsigned)strlen(how->alpn));
	if (how->session)
		SSL_set_session(p->ssl, how->session);
	SSL_set_fd(p->ssl, p->tcp.fd);
	ERR_clear_error();
	return SSL_connect(p->ssl) == 1;
}

static void
peer_close(struct peer *p)
{
	/* Without an end of its connection a client takes no session for fit to be resumed. */
	SSL_set_shutdown(p->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_SESSION_free(p->session);
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
	client_close(&p->tcp);
}

static void
peer_open(struct peer *p, uint16_t port, const struct how *how)
{
	assert_true(peer_try(p, port, how));
}

static bool
peer_send(struct peer *p, struct str data)
{
	ERR_clear_error();
	while (data.len) {
		int n = SSL_write(p->ssl, data.ptr, data.len < 100000 ? (int)data.len : 100000);

		if (n <= 0)
			return false;
		data = str_skip(data, (size_t)n);
	}
	return true;
}

/* Some more; 0 at the end that the server has said, negative if it only stopped. */
static int
peer_receive(struct peer *p)
{
	static _Thread_local char some[64 * 1024];
	int n;

	ERR_clear_error();
	n = SSL_read(p->ssl, some, sizeof(some));
	if (n > 0) {
		buf_append(&p->tcp.in, some, (size_t)n);
		return n;
	}
	return SSL_get_error(p->ssl, n) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static void
peer_expect(struct peer *p, const char *text)
{
	size_t n = strlen(text);

	while (p->tcp.in.len < n)
		assert_true(peer_receive(p) > 0);
	assert_memory_equal(p->tcp.in.ptr, text, n);
	buf_consume(&p->tcp.in, n);
}

static void
peer_expect_end(struct peer *p)
{
	int n;

	while ((n = peer_receive(p)) > 0)
		;
	assert_int_equal(n, 0);
}

/* Asks over HTTP, and takes the whole answer. */
static void
peer_get(struct peer *p)
{
	static const char end[] = "\r\n\r\nhello\n";

	assert_true(peer_send(p, STR(GET)));
	do {
		assert_true(peer_receive(p) > 0);
	} while (p->tcp.in.len < strlen(end) ||
		 memcmp(p->tcp.in.ptr + p->tcp.in.len - strlen(end), end, strlen(end)) != 0);
	assert_memory_equal(p->tcp.in.ptr, "HTTP/1.1 200 ", 13);
	buf_clear(&p->tcp.in);
}

/* The peer's certificate has that name. */
static bool
peer_sees(const struct peer *p, const char *host)
{
	X509 *x = SSL_get1_peer_certificate(p->ssl);
	bool sees = X509_check_host(x, host, 0, 0, NULL) == 1;

	X509_free(x);
	return sees;
}

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

/* ---- Tests ---- */

static void
requests_and_lines_come_over_both_versions(void **state)
{
	struct secure s = { 0 };
	struct answer a = { 0 };
	struct client plain;
	struct peer http;
	struct peer line;

	(void)state;
	secure_start(&s, NULL);
	for (size_t i = 0; i < 2; i++) {
		struct how how = { .version = versions[i] };

		peer_open(&http, s.port, &how);
		assert_int_equal(SSL_version(http.ssl), versions[i]);
		for (int n = 0; n < 3; n++)
			peer_get(&http);
		peer_open(&line, s.echo_port, &how);
		assert_true(peer_send(&line, STR("one\ntw")));
		peer_expect(&line, "one\n");
		assert_true(peer_send(&line, STR("o\nquit\n")));
		peer_expect(&line, "two\n");
		peer_expect_end(&line);
		peer_close(&line);
		peer_close(&http);
	}
	client_open(&plain, &s.http);
	client_ask(&plain, GET, &a, 200);
	answer_release(&a);
	client_close(&plain);
	secure_stop(&s);
}

static void
older_versions_and_weak_ciphers_are_refused(void **state)
{
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	assert_false(peer_try(&p, s.port, &(struct how){ .version = TLS1_1_VERSION }));
	peer_close(&p);
	secure_stop(&s);
	s = (struct secure){ .settings.versions = "['tlsv1.3']" };
	secure_start(&s, NULL);
	assert_false(peer_try(&p, s.port, &(struct how){ .version = TLS1_2_VERSION }));
	peer_close(&p);
	peer_open(&p, s.port, NULL);
	peer_close(&p);
	secure_stop(&s);
	s = (struct secure){ .settings.ciphers = "[\"ECDHE-ECDSA-AES256-GCM-SHA384\", "
						 "\"ECDHE-RSA-AES256-GCM-SHA384\"]" };
	secure_start(&s, NULL);
	peer_open(&p, s.port, &(struct how){ .version = TLS1_2_VERSION });
	assert_non_null(strstr(SSL_get_cipher_name(p.ssl), "AES256-GCM-SHA384"));
	peer_close(&p);
	secure_stop(&s);
}

static void
an_answer_waits_for_a_client_that_reads_slowly(void **state)
{
	const struct server_config config = { .output_bytes = 16 * 1024 };
	struct secure s = { 0 };
	struct peer p;
	size_t at = 0;

	(void)state;
	secure_start(&s, &config);
	peer_open(&p, s.port, &(struct how){ .receive_bytes = 8192 });
	assert_true(
		peer_send(&p, STR("GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")));
	usleep(SHORT_MS * 1000);
	/* What waits is a few records, and not the answer. */
	assert_true(net_host_take_memory_peak(server_host(s.http.server)) < BIG_BYTES + 600000);
	while (peer_receive(&p) > 0)
		;
	while (memcmp(p.tcp.in.ptr + at, "\r\n\r\n", 4) != 0)
		at++;
	assert_int_equal(p.tcp.in.len - at - 4, BIG_BYTES);
	for (size_t i = 0; i < BIG_BYTES; i++)
		assert_int_equal(p.tcp.in.ptr[at + 4 + i], 'a' + i % 23);
	peer_close(&p);
	secure_stop(&s);
}

static void
a_reader_that_stalls_is_cut_off(void **state)
{
	const struct server_config config = { .body_timeout_ms = SHORT_MS, .output_bytes = 8192 };
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, &config);
	peer_open(&p, s.port, &(struct how){ .receive_bytes = 8192 });
	assert_true(peer_send(&p, STR("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")));
	usleep(10 * SHORT_MS * 1000);
	while (peer_receive(&p) > 0)
		;
	assert_true(p.tcp.in.len < BIG_BYTES);
	peer_close(&p);
	secure_stop(&s);
}

static void
a_client_that_ends_its_side_gets_what_it_asked(void **state)
{
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	for (size_t i = 0; i < 2; i++) {
		peer_open(&p, s.echo_port, &(struct how){ .version = versions[i] });
		assert_true(peer_send(&p, STR("one\ntwo\nand a half")));
		assert_true(SSL_shutdown(p.ssl) >= 0);
		peer_expect(&p, "one\ntwo\n");
		peer_expect_end(&p);
		peer_close(&p);
	}
	secure_stop(&s);
}

static void
a_session_is_resumed_also_after_a_reload(void **state)
{
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct secure s = { 0 };
		int64_t resumed = handshakes(RESUMED);
		struct peer first;
		struct peer again;
		struct how how = { .version = versions[i] };

		secure_start(&s, NULL);
		peer_open(&first, s.port, &how);
		peer_get(&first);
		assert_non_null(first.session);
		how.session = first.session;
		peer_open(&again, s.port, &how);
		peer_get(&again);
		assert_true(SSL_session_reused(again.ssl));
		/* In TLS 1.3 a ticket serves once, and the resumed session has brought another. */
		how.session = again.session ? again.session : first.session;
		again.session = NULL;
		peer_close(&again);
		assert_int_equal(net_tls_reload(s.tls, &err), STATUS_OK);
		peer_open(&again, s.port, &how);
		peer_get(&again);
		assert_true(SSL_session_reused(again.ssl));
		assert_int_equal(handshakes(RESUMED), resumed + 2);
		peer_close(&again);
		if (how.session != first.session)
			SSL_SESSION_free(how.session);
		peer_close(&first);
		secure_stop(&s);
	}
}

static void
a_ticket_of_another_server_makes_a_full_handshake(void **state)
{
	struct secure one = { 0 };
	struct secure other = { 0 };
	struct peer first;
	struct peer p;

	(void)state;
	secure_start(&one, NULL);
	secure_start(&other, NULL);
	peer_open(&first, one.port, NULL);
	peer_get(&first);
	peer_open(&p, other.port, &(struct how){ .session = first.session });
	peer_get(&p);
	assert_false(SSL_session_reused(p.ssl));
	peer_close(&p);
	peer_close(&first);
	secure_stop(&one);
	secure_stop(&other);
}

static void
a_named_host_gets_its_certificate(void **state)
{
	struct secure s = { 0 };
	struct cert cert;
	char files[160];
	struct peer p;

	(void)state;
	cert_make(&cert, kind, "DNS:one.example.org", NULL);
	cert_write(&cert, file("one.pem"), true, true, NULL);
	cert_free(&cert);
	cert_make(&cert, CERT_P256, "DNS:*.example.net,DNS:example.net", NULL);
	cert_write(&cert, file("two.pem"), true, true, NULL);
	cert_free(&cert);
	(void)snprintf(files, sizeof(files), "[\"%s\", %s,]", file("one.pem"), file("two.pem"));
	s.settings.sni_cert_files = files;
	secure_start(&s, NULL);
	for (size_t i = 0; i < 2; i++) {
		struct how how = { .version = versions[i] };

		peer_open(&p, s.port, &how);
		assert_true(peer_sees(&p, "localhost"));
		peer_close(&p);
		how.host = "one.example.org";
		peer_open(&p, s.port, &how);
		assert_true(peer_sees(&p, "one.example.org"));
		peer_close(&p);
		how.host = "a.example.net";
		peer_open(&p, s.port, &how);
		assert_true(peer_sees(&p, "a.example.net"));
		peer_get(&p);
		how.session = p.session;
		p.session = NULL;
		peer_close(&p);
		peer_open(&p, s.port, &how);
		assert_true(SSL_session_reused(p.ssl));
		peer_close(&p);
		SSL_SESSION_free(how.session);
		how.session = NULL;
		how.host = "nobody.example";
		peer_open(&p, s.port, &how);
		assert_true(peer_sees(&p, "localhost"));
		peer_close(&p);
	}
	secure_stop(&s);
}

static void
http_is_chosen_among_a_client_s_protocols(void **state)
{
	struct secure s = { 0 };
	const unsigned char *name;
	unsigned len;
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	peer_open(&p, s.port, &(struct how){ .alpn = "\x02h2\x08http/1.1" });
	SSL_get0_alpn_selected(p.ssl, &name, &len);
	assert_true(str_eq(str_of((const char *)name, len), STR("http/1.1")));
	peer_get(&p);
	peer_close(&p);
	assert_false(peer_try(&p, s.port, &(struct how){ .alpn = "\x02h2" }));
	assert_int_equal(ERR_GET_REASON(ERR_peek_error()),
			 SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
	peer_close(&p);
	peer_open(&p, s.echo_port, &(struct how){ .alpn = "\x02h2" });
	SSL_get0_alpn_selected(p.ssl, &name, &len);
	assert_int_equal(len, 0);
	peer_close(&p);
	secure_stop(&s);
}

/* In TLS 1.3 a client learns of its refusal when it reads. */
static bool
is_let_in(const struct secure *s, const struct how *how)
{
	struct peer p;
	bool in = peer_try(&p, s->port, how) && peer_send(&p, STR(GET)) && peer_receive(&p) > 0;

	peer_close(&p);
	return in;
}

static void
clients_show_certificates_where_they_must(void **state)
{
	struct cert authority;
	struct cert cert;

	(void)state;
	cert_make(&authority, kind, NULL, NULL);
	cert_write(&authority, file("ca.pem"), true, false, NULL);
	cert_make(&cert, kind, "DNS:anna", &authority);
	cert_write(&cert, file("anna.pem"), true, true, NULL);
	cert_free(&cert);
	cert_make(&cert, kind, "DNS:eve", NULL);
	cert_write(&cert, file("eve.pem"), true, true, NULL);
	cert_free(&cert);
	cert_free(&authority);
	for (size_t i = 0; i < 4; i++) {
		struct secure s = { .settings = { .verify_clients = true, .depth = 1 } };
		struct how none = { .version = versions[i % 2] };
		struct how anna = { .version = versions[i % 2], .own = file("anna.pem") };
		struct how eve = { .version = versions[i % 2], .own = file("eve.pem") };
		struct peer p;

		s.settings.cacert_file = file("ca.pem");
		s.settings.require_clients = i >= 2;
		secure_start(&s, NULL);
		assert_int_equal(is_let_in(&s, &none), i < 2);
		assert_true(is_let_in(&s, &anna));
		assert_false(is_let_in(&s, &eve));
		peer_open(&p, s.port, &anna);
		peer_get(&p);
		anna.session = p.session;
		p.session = NULL;
		peer_close(&p);
		peer_open(&p, s.port, &anna);
		peer_get(&p);
		assert_true(SSL_session_reused(p.ssl));
		peer_close(&p);
		SSL_SESSION_free(anna.session);
		secure_stop(&s);
	}
}

/* Once other authorities are trusted, what a ticket says of a client is worth nothing. */
static void
a_session_does_not_outlive_its_authority(void **state)
{
	struct secure s = { .settings = { .verify_clients = true, .require_clients = true } };
	struct how anna = { 0 };
	struct err err = { 0 };
	struct cert authority;
	struct cert cert;
	struct peer p;

	(void)state;
	cert_make(&authority, kind, NULL, NULL);
	cert_write(&authority, file("ca2.pem"), true, false, NULL);
	cert_make(&cert, kind, "DNS:anna", &authority);
	cert_write(&cert, file("anna2.pem"), true, true, NULL);
	cert_free(&cert);
	cert_free(&authority);
	s.settings.cacert_file = file("ca2.pem");
	secure_start(&s, NULL);
	anna.own = file("anna2.pem");
	peer_open(&p, s.port, &anna);
	peer_get(&p);
	anna.session = p.session;
	p.session = NULL;
	peer_close(&p);
	assert_true(is_let_in(&s, &anna));
	cert_make(&authority, kind, NULL, NULL);
	cert_write(&authority, file("ca2.pem"), true, false, NULL);
	cert_free(&authority);
	assert_int_equal(net_tls_reload(s.tls, &err), STATUS_OK);
	assert_false(is_let_in(&s, &anna));
	SSL_SESSION_free(anna.session);
	secure_stop(&s);
}

static void
certificates_change_under_open_connections(void **state)
{
	struct secure s = { .settings = { .password = "swordfish" } };
	struct err err = { 0 };
	struct cert cert;
	struct peer before;
	struct peer after;

	(void)state;
	s.settings.cert_file = strdup(file("changing.pem"));
	cert_make(&cert, kind, "DNS:old.example.org", NULL);
	cert_write(&cert, file("changing.pem"), true, true, NULL);
	cert_free(&cert);
	secure_start(&s, NULL);
	peer_open(&before, s.port, NULL);
	peer_get(&before);
	cert_make(&cert, kind, "DNS:new.example.org", NULL);
	cert_write(&cert, file("changing.pem"), true, true, "swordfish");
	assert_int_equal(net_tls_reload(s.tls, &err), STATUS_OK);
	peer_get(&before);
	assert_true(peer_sees(&before, "old.example.org"));
	peer_open(&after, s.port, NULL);
	peer_get(&after);
	assert_true(peer_sees(&after, "new.example.org"));
	peer_close(&after);
	/* A file that cannot be used changes nothing. */
	cert_write(&cert, file("changing.pem"), true, false, NULL);
	assert_int_equal(net_tls_reload(s.tls, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "changing.pem"));
	cert_write(&cert, file("changing.pem"), true, true, "another password");
	assert_int_equal(net_tls_reload(s.tls, &err), STATUS_INVALID);
	unlink(file("changing.pem"));
	assert_int_equal(net_tls_reload(s.tls, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "No such file"));
	peer_open(&after, s.port, NULL);
	assert_true(peer_sees(&after, "new.example.org"));
	peer_get(&after);
	peer_get(&before);
	peer_close(&after);
	peer_close(&before);
	cert_free(&cert);
	secure_stop(&s);
}

static void
what_makes_no_sense_is_refused_at_the_start(void **state)
{
	const struct tls_settings bad[] = {
		{ .cert_file = NULL },
		{ .versions = "tlsv1.1, tlsv1.2" },
		{ .versions = "[]" },
		{ .ciphers = "ROT13" },
		{ .ciphers = "TLS_ROT13" },
		{ .verify_clients = true },
		{ .require_clients = true },
		{ .verify_clients = true, .cacert_file = "/nonexistent" },
		{ .sni_cert_files = "/nonexistent" },
		{ .key_file = "/nonexistent" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tls_settings settings = bad[i];
		struct net_tls *tls;
		struct err err = { 0 };

		if (!settings.versions)
			settings.versions = "tlsv1.3";
		if (i)
			settings.cert_file = file("cert.pem");
		if (!settings.key_file)
			settings.key_file = file("key.pem");
		assert_int_not_equal(net_tls_new(&settings, &tls, &err), STATUS_OK);
		assert_true(err.text[0]);
	}
}

static void
one_that_speaks_in_clear_is_told_so(void **state)
{
	static const char *const methods[] = { "GET", "PUT", "DELETE", "OPTIONS", "BREW" };
	struct secure s = { 0 };
	struct answer a = { 0 };
	struct client c;
	char request[64];

	(void)state;
	secure_start(&s, NULL);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		(void)snprintf(request, sizeof(request), "%s / HTTP/1.1\r\nHost: h\r\n\r\n",
			       methods[i]);
		client_open_port(&c, s.port, 0);
		client_ask(&c, request, &a, 400);
		assert_non_null(strstr(a.body.ptr, "https"));
		while (client_receive(&c))
			;
		assert_false(c.reset);
		client_close(&c);
	}
	answer_release(&a);
	secure_stop(&s);
}

static void
garbage_harms_nobody(void **state)
{
	struct secure s = { 0 };
	struct peer good;
	struct client c;
	char bytes[600];

	(void)state;
	secure_start(&s, NULL);
	peer_open(&good, s.port, NULL);
	srand(7);
	for (int i = 0; i < TIMES; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (char)rand();
		/* Half of them look like a handshake at first. */
		if (i % 2)
			memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		client_open_port(&c, i % 3 ? s.port : s.echo_port, 0);
		(void)client_send(&c, str_of(bytes, 1 + (size_t)rand() % sizeof(bytes)));
		if (i % 5)
			client_shutdown(&c);
		else
			client_close_reset(&c);
		if (i % 5) {
			while (client_receive(&c))
				;
			client_close(&c);
		}
	}
	peer_get(&good);
	peer_close(&good);
	secure_stop(&s);
}

/* Records that were changed on their way end the connection, and no byte of them is believed. */
static void
a_changed_record_ends_the_connection(void **state)
{
	static const char record[] = "\x17\x03\x03\x00\x20"
				     "0123456789abcdef0123456789abcdef";
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	for (size_t i = 0; i < 2; i++) {
		peer_open(&p, s.port, &(struct how){ .version = versions[i] });
		peer_get(&p);
		assert_true(client_send(&p.tcp, str_of(record, sizeof(record) - 1)));
		assert_true(peer_receive(&p) < 0);
		assert_int_equal(p.tcp.in.len, 0);
		peer_close(&p);
	}
	secure_stop(&s);
}

static void
a_renegotiation_is_refused(void **state)
{
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	peer_open(&p, s.port, &(struct how){ .version = TLS1_2_VERSION });
	peer_get(&p);
	assert_int_equal(SSL_renegotiate(p.ssl), 1);
	assert_int_not_equal(SSL_do_handshake(p.ssl), 1);
	peer_close(&p);
	secure_stop(&s);
}

static void
half_handshakes_end_in_time_and_hold_up_nobody(void **state)
{
	struct secure s = { .settings = { .handshake_timeout_ms = 5 * SHORT_MS } };
	struct client half[HALF_OPEN];
	struct peer p;
	uint64_t begun;

	(void)state;
	secure_start(&s, NULL);
	begun = clock_mono_ns();
	for (int i = 0; i < HALF_OPEN; i++) {
		client_open_port(&half[i], s.port, 0);
		if (i % 2)
			assert_true(client_send(&half[i], str_of("\x16\x03\x01\x02", 4)));
	}
	peer_open(&p, s.port, NULL);
	peer_get(&p);
	for (int i = 0; i < HALF_OPEN; i++) {
		assert_false(client_receive(&half[i]));
		client_close(&half[i]);
	}
	assert_true(clock_mono_ns() - begun >= 4 * SHORT_MS * CLOCK_NS_PER_MS);
	/* A connection that is open stays. */
	peer_get(&p);
	peer_close(&p);
	secure_stop(&s);
}

static bool
has_input(const struct client *c, int within_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, within_ms) == 1;
}

static void
a_first_message_that_is_too_long_is_refused(void **state)
{
	static const char decode_error[] = "\x15\x03\x01\x00\x02\x02\x32";
	struct secure s = { 0 };
	struct client c;

	(void)state;
	secure_start(&s, NULL);
	client_open_port(&c, s.port, 0);
	/* 16,385 bytes, of which four have come. */
	assert_true(client_send(&c, STR("\x16\x03\x01\x40\x00\x01\x00\x40\x01")));
	while (client_receive(&c))
		;
	assert_int_equal(c.in.len, sizeof(decode_error) - 1);
	assert_memory_equal(c.in.ptr, decode_error, sizeof(decode_error) - 1);
	client_close(&c);
	/* OpenSSL is asked about one byte less, and waits for the rest of it. */
	client_open_port(&c, s.port, 0);
	assert_true(client_send(&c, STR("\x16\x03\x01\x40\x00\x01\x00\x40\x00")));
	assert_false(has_input(&c, SHORT_MS));
	client_close(&c);
	secure_stop(&s);
}

/* The first message of a client: complete, so that the server computes its answer. */
static size_t
first_message(SSL_CTX *ctx, char *ret, size_t most)
{
	SSL *ssl = SSL_new(ctx);
	BIO *out = BIO_new(BIO_s_mem());
	int n;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	assert_int_equal(SSL_connect(ssl), -1);
	n = BIO_read(out, ret, (int)most);
	SSL_free(ssl);
	assert_true(n > 100);
	return (size_t)n;
}

static void
half_handshakes_make_room_where_memory_is_short(void **state)
{
	enum {
		LIMIT_BYTES = 2 * 1024 * 1024,
		MANY = 80, /* of which OpenSSL would have 3.4 MiB */
	};
	const struct server_config config = { .memory_bytes = LIMIT_BYTES };
	struct secure s = { 0 };
	struct client half[MANY];
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char hello[4096];
	size_t n = first_message(ctx, hello, sizeof(hello));
	uint64_t begun_ns;
	int64_t before = 0, after = 0;
	struct peer p;

	(void)state;
	SSL_CTX_free(ctx);
	secure_start(&s, &config);
	(void)metric_sum("frond_refusals_total", "memory_bytes", &before);
	begun_ns = clock_mono_ns();
	for (size_t i = 0; i < MANY; i++) {
		client_open_port(&half[i], s.port, 0);
		assert_true(client_send(&half[i], str_of(hello, n)));
	}
	/* Those who rest in the middle are ended long before the time of a handshake is over. */
	peer_open(&p, s.port, NULL);
	peer_get(&p);
	for (size_t i = 0; i < MANY; i++)
		client_close(&half[i]);
	assert_true(clock_mono_ns() - begun_ns < 15 * 1000 * CLOCK_NS_PER_MS);
	assert_true(metric_sum("frond_refusals_total", "memory_bytes", &after));
	assert_true(after > before);
	/* Beside the flat amounts of those that have begun, which are less than a half. */
	assert_true(net_host_take_memory_peak(server_host(s.http.server)) <
		    LIMIT_BYTES - LIMIT_BYTES / 8);
	peer_close(&p);
	secure_stop(&s);
}

static void
clients_that_leave_at_any_moment_harm_nobody(void **state)
{
	struct secure s = { 0 };
	struct peer p;

	(void)state;
	secure_start(&s, NULL);
	for (int i = 0; i < TIMES; i++) {
		struct linger none = { .l_onoff = 1, .l_linger = 0 };

		(void)peer_try(&p, i % 2 ? s.port : s.echo_port,
			       &(struct how){ .version = versions[i / 2 % 2] });
		if (i % 3)
			(void)peer_send(&p, i % 2 ? STR("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
						  : STR("one\ntwo\n"));
		if (i % 3 && i % 5 == 1)
			(void)peer_receive(&p);
		if (i % 7 == 2)
			(void)SSL_shutdown(p.ssl);
		if (i % 4)
			setsockopt(p.tcp.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		peer_close(&p);
	}
	peer_open(&p, s.port, NULL);
	peer_get(&p);
	peer_close(&p);
	secure_stop(&s);
}

static void
too_many_connections_are_told_so_behind_their_handshake(void **state)
{
	const struct server_config config = { .max_connections = 1 };
	struct secure s = { 0 };
	struct peer first;
	struct peer more;

	(void)state;
	secure_start(&s, &config);
	peer_open(&first, s.port, NULL);
	peer_get(&first);
	peer_open(&more, s.port, NULL);
	peer_expect(&more, "HTTP/1.1 503 ");
	peer_expect_end(&more);
	peer_close(&more);
	peer_open(&more, s.echo_port, NULL);
	peer_expect(&more, "too many\n");
	peer_expect_end(&more);
	peer_close(&more);
	peer_close(&first);
	secure_stop(&s);
}

static void
a_stop_ends_idle_connections_and_half_handshakes(void **state)
{
	struct secure s = { 0 };
	struct client half;
	struct peer idle;

	(void)state;
	secure_start(&s, NULL);
	peer_open(&idle, s.port, NULL);
	peer_get(&idle);
	client_open_port(&half, s.port, 0);
	assert_true(client_send(&half, str_of("\x16\x03\x01\x02", 4)));
	usleep(SHORT_MS * 1000);
	server_stop(s.http.server);
	peer_expect_end(&idle);
	assert_false(client_receive(&half));
	peer_close(&idle);
	client_close(&half);
	assert_int_equal(fixture_join(&s.http), STATUS_OK);
	secure_stop(&s);
}

static void
write_certificates(void)
{
	struct cert cert;

	cert_make(&cert, kind, "DNS:localhost,IP:127.0.0.1", NULL);
	cert_write(&cert, file("cert.pem"), true, false, NULL);
	cert_write(&cert, file("key.pem"), false, true, NULL);
	cert_free(&cert);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_and_lines_come_over_both_versions),
		cmocka_unit_test(older_versions_and_weak_ciphers_are_refused),
		cmocka_unit_test(an_answer_waits_for_a_client_that_reads_slowly),
		cmocka_unit_test(a_reader_that_stalls_is_cut_off),
		cmocka_unit_test(a_client_that_ends_its_side_gets_what_it_asked),
		cmocka_unit_test(a_session_is_resumed_also_after_a_reload),
		cmocka_unit_test(a_ticket_of_another_server_makes_a_full_handshake),
		cmocka_unit_test(a_named_host_gets_its_certificate),
		cmocka_unit_test(http_is_chosen_among_a_client_s_protocols),
		cmocka_unit_test(clients_show_certificates_where_they_must),
		cmocka_unit_test(a_session_does_not_outlive_its_authority),
		cmocka_unit_test(certificates_change_under_open_connections),
		cmocka_unit_test(what_makes_no_sense_is_refused_at_the_start),
		cmocka_unit_test(one_that_speaks_in_clear_is_told_so),
		cmocka_unit_test(garbage_harms_nobody),
		cmocka_unit_test(a_changed_record_ends_the_connection),
		cmocka_unit_test(a_renegotiation_is_refused),
		cmocka_unit_test(half_handshakes_end_in_time_and_hold_up_nobody),
		cmocka_unit_test(a_first_message_that_is_too_long_is_refused),
		cmocka_unit_test(half_handshakes_make_room_where_memory_is_short),
		cmocka_unit_test(clients_that_leave_at_any_moment_harm_nobody),
		cmocka_unit_test(too_many_connections_are_told_so_behind_their_handshake),
		cmocka_unit_test(a_stop_ends_idle_connections_and_half_handshakes),
	};
	char command[64];
	int failed;

	signal(SIGPIPE, SIG_IGN);
	kind = argc > 1 && strcmp(argv[1], "rsa") == 0 ? CERT_RSA : CERT_P256;
	if (!mkdtemp(dir))
		return 1;
	write_certificates();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) != 0 ? 1 : failed;
}
