/*
 * What TLS costs a server: processor time of a GET on a kept connection, in clear and with TLS 1.3,
 * of full and of resumed handshakes, and the memory of idle connections.
 *
 *     tls PID HTTP_PORT HTTPS_PORT PATH
 *
 * bench/tls.py starts the server. One request or handshake at a time, from this process.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cpu.h"

enum {
	ROUNDS = 5,
	GETS = 4000,
	HANDSHAKES = 400,
	IDLE = 2000,
	ANSWER_BYTES = 64 * 1024,
	SETTLE_US = 300 * 1000, /* for the server's threads to be done with what was asked */
};

struct target {
	int pid;
	uint16_t plain;
	uint16_t secure;
	const char *path;
};

struct peer {
	int fd;
	SSL *ssl; /* NULL: in clear */
};

static SSL_SESSION *newest; /* the ticket that came last */

static void
fail(const char *what)
{
	fprintf(stderr, "tls: %s\n", what);
	exit(1);
}

static int
on_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(newest);
	newest = session;
	return 1;
}

static SSL_CTX *
make_context(int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	return ctx;
}

static struct peer
peer_open(uint16_t port, SSL_CTX *ctx, SSL_SESSION *session)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct peer p = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	if (p.fd < 0 || connect(p.fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("cannot connect");
	if (!ctx)
		return p;
	p.ssl = SSL_new(ctx);
	SSL_set_fd(p.ssl, p.fd);
	if (session)
		SSL_set_session(p.ssl, session);
	if (SSL_connect(p.ssl) != 1)
		fail("the handshake has failed");
	return p;
}

static void
peer_close(struct peer *p)
{
	if (p->ssl)
		SSL_shutdown(p->ssl);
	SSL_free(p->ssl);
	close(p->fd);
}

/* One request with its answer, which fits one read but for the first. */
static void
peer_get(struct peer *p, const char *path)
{
	static char answer[ANSWER_BYTES];
	char request[256];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			 path);
	size_t got = 0;

	if ((p->ssl ? SSL_write(p->ssl, request, n) : (int)write(p->fd, request, (size_t)n)) != n)
		fail("a request could not be sent");
	do {
		n = p->ssl ? SSL_read(p->ssl, answer + got, (int)(ANSWER_BYTES - 1 - got))
			   : (int)read(p->fd, answer + got, ANSWER_BYTES - 1 - got);
		if (n <= 0)
			fail("an answer did not come");
		got += (size_t)n;
		answer[got] = '\0';
	} while (answer[got - 1] != '\n' || !strstr(answer, "\r\n\r\n"));
	if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0)
		fail("an answer is not 200");
}

/* The server's processor time for each of so many GETs. */
static double
measure_gets(const struct target *t, SSL_CTX *ctx)
{
	struct peer p = peer_open(ctx ? t->secure : t->plain, ctx, NULL);
	uint64_t begun;
	double us;

	for (int i = 0; i < GETS / 10; i++)
		peer_get(&p, t->path);
	begun = cpu_of_process_us(t->pid);
	for (int i = 0; i < GETS; i++)
		peer_get(&p, t->path);
	us = (double)(cpu_of_process_us(t->pid) - begun) / GETS;
	peer_close(&p);
	return us;
}

/* The same for each connection with one GET; what a handshake takes is the difference to clear. */
static double
measure_handshakes(const struct target *t, SSL_CTX *ctx, bool resumed)
{
	uint64_t begun = cpu_of_process_us(t->pid);
	int reused = 0;

	for (int i = 0; i < HANDSHAKES; i++) {
		struct peer p = peer_open(ctx ? t->secure : t->plain, ctx, resumed ? newest : NULL);

		reused += p.ssl && SSL_session_reused(p.ssl);
		peer_get(&p, "/_up");
		peer_close(&p);
	}
	if (resumed && reused < HANDSHAKES - 1)
		fail("sessions were not resumed");
	usleep(SETTLE_US);
	return (double)(cpu_of_process_us(t->pid) - begun) / HANDSHAKES;
}

static uint64_t
rss_bytes(int pid)
{
	char path[64];
	char line[256];
	uint64_t kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* The memory of each of many connections that have asked something and are idle. */
static double
measure_idle(const struct target *t, SSL_CTX *ctx)
{
	static struct peer peers[IDLE];
	uint64_t before = rss_bytes(t->pid);
	double bytes;

	for (int i = 0; i < IDLE; i++) {
		peers[i] = peer_open(ctx ? t->secure : t->plain, ctx, NULL);
		peer_get(&peers[i], "/_up");
	}
	usleep(SETTLE_US);
	bytes = ((double)rss_bytes(t->pid) - (double)before) / IDLE;
	for (int i = 0; i < IDLE; i++)
		peer_close(&peers[i]);
	usleep(SETTLE_US);
	return bytes;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(values[0]), compare);
	return values[ROUNDS / 2];
}

static void
measure(const struct target *t)
{
	SSL_CTX *new = make_context(TLS1_3_VERSION);
	SSL_CTX *old = make_context(TLS1_2_VERSION);
	double v[7][ROUNDS];
	double plain_idle = measure_idle(t, NULL);
	double idle = measure_idle(t, new);

	for (int i = 0; i < ROUNDS; i++) {
		v[0][i] = measure_gets(t, NULL);
		v[1][i] = measure_gets(t, new);
		v[2][i] = measure_handshakes(t, NULL, false);
		v[3][i] = measure_handshakes(t, new, false) - v[2][i];
		v[4][i] = measure_handshakes(t, new, true) - v[2][i];
		v[5][i] = measure_handshakes(t, old, false) - v[2][i];
		v[6][i] = measure_handshakes(t, old, true) - v[2][i];
	}
	printf("GET on a kept connection, in clear        %8.1f us\n", median(v[0]));
	printf("GET on a kept connection, TLS 1.3         %8.1f us\n", median(v[1]));
	printf("full handshake, TLS 1.3                   %8.1f us\n", median(v[3]));
	printf("resumed handshake, TLS 1.3                %8.1f us\n", median(v[4]));
	printf("full handshake, TLS 1.2                   %8.1f us\n", median(v[5]));
	printf("resumed handshake, TLS 1.2                %8.1f us\n", median(v[6]));
	printf("idle connection, in clear                 %8.0f bytes\n", plain_idle);
	printf("idle connection, TLS 1.3                  %8.0f bytes\n", idle);
	SSL_CTX_free(new);
	SSL_CTX_free(old);
}

int
main(int argc, char **argv)
{
	struct target t;

	if (argc != 5) {
		fprintf(stderr, "usage: tls PID HTTP_PORT HTTPS_PORT PATH\n");
		return 2;
	}
	t = (struct target){ .pid = atoi(argv[1]),
			     .plain = (uint16_t)atoi(argv[2]),
			     .secure = (uint16_t)atoi(argv[3]),
			     .path = argv[4] };
	measure(&t);
	SSL_SESSION_free(newest);
	return 0;
}
