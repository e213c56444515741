/*
 * A small blocking HTTP client over a raw socket, and a server of the CouchDB door to talk to, for
 * tests. A failure of either fails the test that is running.
 */
#ifndef FROND_TESTS_DOOR_CLIENT_H
#define FROND_TESTS_DOOR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "door/couch/couch.h"

struct client;

struct client *client_open(uint16_t port);
/* One whose socket holds little of an answer that it does not read. */
struct client *client_open_narrow(uint16_t port);
void client_close(struct client *c);

struct response {
	int status;
	char *head; /* status line and headers */
	char *body; /* NUL-terminated */
	size_t body_len;
	size_t body_cap;
	bool broken; /* the connection ended in the middle */
};

void response_release(struct response *r);

/* The header's value in a buffer that the next call overwrites; NULL without one. */
const char *response_header(const struct response *r, const char *name);

/* `headers` are lines that end in CR LF, or NULL; `body` NULL: none. */
void client_send(struct client *c, const char *method, const char *target, const char *headers,
		 const char *body);
/* The same with a body that may hold NULs. */
void client_send_bytes(struct client *c, const char *method, const char *target,
		       const char *headers, const void *body, size_t body_len);
/* Bytes as they are, a whole request or a part of one. */
void client_send_raw(struct client *c, const char *bytes);
/* The whole answer to the oldest request; `head_only` for one to HEAD. */
struct response client_receive(struct client *c, bool head_only);
/* The same, but the connection may end first: the response is broken then, with status 0. */
struct response client_receive_or_end(struct client *c, bool head_only);

/* For feeds: status and headers alone, then line after line of a chunked body. */
struct response client_receive_head(struct client *c);
/* The next line without its end, within `timeout_ms`; NULL at the end of the body or in time. The
 * line is the client's until the next call. */
const char *client_line(struct client *c, int timeout_ms);
/* True if the body came to its proper end. */
bool client_ended(const struct client *c);

/* True if the server has closed the connection. */
bool client_lost(const struct client *c);

/* ---- The server ---- */

struct door {
	bool beside; /* the store is another one's, which ends later */
	struct kv_store *store;
	struct settings *settings; /* that it was started with */
	struct settings_live *live;
	struct view_engine *views;
	struct js *js;         /* its worker is FROND_JS_WORKER of the environment */
	struct limits *limits; /* of all doors of the test; NULL: another door has brought them */
	struct people_news *news; /* after doors_hear(); otherwise NULL, as `chores` */
	struct chores *chores;
	struct couch *couch;
	struct server *server;
	uint16_t port;
	struct client *client; /* a connection for most requests */
	char path[64];
	uint64_t thread;
	struct response last; /* of door_request() */
};

/*
 * Doors that start from now on hear of people and rights that change, as those of `frond serve` do.
 * The feeds of others look by themselves, each second.
 */
void doors_hear(void);

/* With an administrator "admin", password "secret", or with none. */
struct door *door_start(bool with_admin);
/*
 * With settings, of which door_stop() disposes: a table of section, name and text, which ends with
 * a NULL. `utils_dir`: as in struct couch_config.
 */
typedef const char *door_setting[3];
struct door *door_start_with(bool with_admin, const door_setting *settings, const char *utils_dir);
/*
 * Another server at the store of `other`, as another process would be: with settings, caches and
 * people of its own. It is stopped before that one.
 */
struct door *door_start_beside(const struct door *other, bool with_admin,
			       const door_setting *settings);
/* With a handler that does something more and calls couch_handle(). */
struct door *door_start_handled(bool with_admin, const door_setting *settings,
				const char *utils_dir,
				void (*handler)(struct http_exchange *x, void *couch));
void door_stop(struct door *d);

/*
 * One request over the door's connection. A body makes it application/json unless `headers` (lines
 * that end in CR LF, or NULL) name a Content-Type. The answer is valid until the next call.
 */
const struct response *door_request(struct door *d, const char *method, const char *target,
				    const char *headers, const char *body);

/* The same, and the test fails unless the status is this and the body contains the text. */
void door_expect(struct door *d, const char *method, const char *target, const char *body,
		 int status, const char *text);
/* … unless the body is exactly this, and a newline. */
void door_expect_body(struct door *d, const char *method, const char *target, const char *body,
		      int status, const char *text);
/* Fails unless the last answer has the text in it, or has it not. */
void door_has(const struct door *d, const char *text);
void door_has_not(const struct door *d, const char *text);

/* A string member of the last answer, in a buffer that the next but seven calls overwrite. */
const char *door_member(const struct door *d, const char *name);

/* PUT /name, which must not be there. */
void door_create(struct door *d, const char *name);

#endif
