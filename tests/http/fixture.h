/* A server in a thread of its own, and a client that speaks in raw bytes. For the tests. */
#ifndef FROND_TESTS_HTTP_FIXTURE_H
#define FROND_TESTS_HTTP_FIXTURE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "http/server.h"

struct fixture {
	struct server *server;
	pthread_t thread;
	enum status run_status;
	bool joined;
};

/* Makes a server with these settings, and runs it. `config` may be NULL. */
void fixture_start(struct fixture *f, const struct server_config *config, http_handler *handler);
void fixture_make(struct fixture *f, const struct server_config *config, http_handler *handler);
void fixture_run(struct fixture *f);
/* Waits for server_run() to return, and returns its status. */
enum status fixture_join(struct fixture *f);
/* Stops, joins and frees. */
void fixture_stop(struct fixture *f);

struct client {
	int fd;
	struct buf in; /* received and not consumed */
	bool eof;
	bool reset;
};

struct answer {
	int status;
	bool whole; /* its end was seen */
	bool close; /* says Connection: close */
	struct buf head;
	struct buf body;
};

void client_open(struct client *c, const struct fixture *f);
/* With a receive buffer that small, so that the server soon cannot send. */
void client_open_small(struct client *c, const struct fixture *f, int receive_bytes);
/* To that port; receive_bytes 0: as usual. */
void client_open_port(struct client *c, uint16_t port, int receive_bytes);
void client_close(struct client *c);
void client_close_reset(struct client *c);
void client_shutdown(struct client *c); /* sends nothing more */
/* False when the server does not take it. */
bool client_send(struct client *c, struct str data);
bool client_send_cstr(struct client *c, const char *text);

/* Receives some more; false at the end, or after five seconds of silence (which fails). */
bool client_receive(struct client *c);

/* The next answer; `bodiless` after a HEAD. Releases what was in `a` before. */
void client_answer(struct client *c, struct answer *a, bool bodiless);
void answer_release(struct answer *a);
bool answer_has(const struct answer *a, const char *in_head);

/* Sends, takes the answer, checks its status. */
void client_ask(struct client *c, const char *request, struct answer *a, int status);

#endif
