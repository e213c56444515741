/*
 * Requests per second of the server alone: a handler that answers a constant, clients in the same
 * process that keep their connections and ask again as soon as they are answered.
 *
 * http_bench [CLIENTS [SECONDS [PIPELINED]]]
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/server.h"

enum {
	BENCH_CLIENTS = 16,
	BENCH_SECONDS = 3,
	BENCH_MOST = 512, /* clients, and requests sent at once */
};

static const char request[] = "GET /bench HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\n\r\n";
static struct server *server;
static unsigned pipelined = 1;
static _Atomic bool ending;

static void
handle(struct http_exchange *x, void *arg)
{
	(void)arg;
	http_set_header(x, STR("Content-Type"), STR("application/json"));
	if (http_send(x, STR("{\"ok\":true}\n")) != STATUS_OK)
		http_abort(x);
}

static void *
serve(void *arg)
{
	struct err err = { 0 };

	(void)arg;
	if (server_run(server, &err) != STATUS_OK)
		fprintf(stderr, "%s\n", err.text);
	return NULL;
}

static int
open_client(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(server_port(server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		perror("connect");
		exit(1);
	}
	return fd;
}

/* Every answer has the same length, so bytes tell how many came. */
static size_t
answer_bytes(int fd)
{
	char text[4096];
	ssize_t n;

	if (send(fd, request, sizeof(request) - 1, 0) < 0)
		return 0;
	n = recv(fd, text, sizeof(text), 0);
	return n > 0 ? (size_t)n : 0;
}

static void *
ask(void *arg)
{
	uint64_t *asked = arg;
	int fd = open_client();
	size_t bytes = answer_bytes(fd);
	size_t batch = (sizeof(request) - 1) * pipelined;
	char *requests = malloc(batch);

	for (unsigned i = 0; requests && i < pipelined; i++)
		memcpy(requests + i * (sizeof(request) - 1), request, sizeof(request) - 1);
	while (requests && bytes && !atomic_load(&ending)) {
		char text[64 * 1024];
		size_t left = bytes * pipelined;
		ssize_t n = send(fd, requests, batch, 0);

		while (n > 0 && left) {
			n = recv(fd, text, left < sizeof(text) ? left : sizeof(text), 0);
			left -= n > 0 ? (size_t)n : 0;
		}
		if (n <= 0)
			break;
		*asked += pipelined;
	}
	free(requests);
	close(fd);
	return NULL;
}

static unsigned
argument(int argc, char **argv, int i, unsigned otherwise)
{
	int n = i < argc ? atoi(argv[i]) : 0;

	if (n <= 0)
		return otherwise;
	return n < BENCH_MOST ? (unsigned)n : BENCH_MOST;
}

int
main(int argc, char **argv)
{
	const struct server_config config = { .handler = handle };
	unsigned clients = argument(argc, argv, 1, BENCH_CLIENTS);
	unsigned seconds = argument(argc, argv, 2, BENCH_SECONDS);
	pthread_t threads[BENCH_MOST];
	static uint64_t asked[BENCH_MOST][8]; /* a cache line each */
	struct err err = { 0 };
	pthread_t serving;
	uint64_t begin_ns;
	uint64_t total = 0;
	double elapsed;

	pipelined = argument(argc, argv, 3, 1);
	if (server_new(&config, &server, &err) != STATUS_OK ||
	    server_listen(server, "127.0.0.1:0", &err) != STATUS_OK ||
	    pthread_create(&serving, NULL, serve, NULL) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	begin_ns = clock_mono_ns();
	for (unsigned i = 0; i < clients; i++)
		if (pthread_create(&threads[i], NULL, ask, &asked[i][0]) != 0)
			return 1;
	sleep(seconds);
	atomic_store(&ending, true);
	for (unsigned i = 0; i < clients; i++) {
		pthread_join(threads[i], NULL);
		total += asked[i][0];
	}
	elapsed = (double)(clock_mono_ns() - begin_ns) / 1e9;
	printf("clients=%u pipelined=%u requests=%llu per_second=%.0f\n", clients, pipelined,
	       (unsigned long long)total, (double)total / elapsed);
	server_stop(server);
	pthread_join(serving, NULL);
	server_free(server);
	return 0;
}
