/*
 * The HTTP layer alone: a server whose handler answers every request with the same bytes, having
 * read the request's body. What a door can come close to and never pass.
 *
 * constant PORT [BYTES]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "http/server.h"

enum {
	ANSWER_BYTES = 1100, /* a document of 1,000 with its _id and _rev */
	BODY_BYTES = 64 * 1024 * 1024,
};

static struct server *server;
static struct str answer;

static void
handle(struct http_exchange *x, void *arg)
{
	struct str body;

	(void)arg;
	http_set_header(x, STR("Cache-Control"), STR("must-revalidate"));
	http_set_header(x, STR("Content-Type"), STR("application/json"));
	http_set_header(x, STR("ETag"), STR("\"1-13a8c4e07d552aabad615117317d5eb8\""));
	if (http_read_all(x, BODY_BYTES, &body) != STATUS_OK || http_send(x, answer) != STATUS_OK)
		http_abort(x);
}

static void
stop(int number)
{
	(void)number;
	server_stop(server);
}

int
main(int argc, char **argv)
{
	const struct server_config config = { .handler = handle };
	size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) : ANSWER_BYTES;
	struct err err = { 0 };
	char address[64];
	char *text = mem_alloc(bytes);

	if (argc < 2 || !text) {
		fprintf(stderr, "constant PORT [BYTES]\n");
		return 2;
	}
	memset(text, 'x', bytes);
	answer = str_of(text, bytes);
	snprintf(address, sizeof(address), "127.0.0.1:%s", argv[1]);
	if (server_new(&config, &server, &err) != STATUS_OK ||
	    server_listen(server, address, &err) != STATUS_OK) {
		fprintf(stderr, "constant: %s\n", err.text);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	printf("constant at http://127.0.0.1:%u\n", server_port(server));
	fflush(stdout);
	if (server_run(server, &err) != STATUS_OK) {
		fprintf(stderr, "constant: %s\n", err.text);
		return 1;
	}
	if (server_free(server)) /* else requests still use it */
		mem_free(text);
	return 0;
}
