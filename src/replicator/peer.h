/*
 * One end of a replication, and the requests to it: what every request carries, and how often it is
 * tried again.
 *
 * A database of this server is reached through the server's own listener like any other database,
 * as the owner of the replication. So the door alone decides what a replication may see and write.
 * A peer belongs to one run and is used on the replicator's thread.
 */
#ifndef FROND_REPLICATOR_PEER_H
#define FROND_REPLICATOR_PEER_H

#include "replicator/net.h"
#include "replicator/rows.h"
#include "replicator/spec.h"

enum {
	PEER_RETRY_MS = 250,            /* the pause before the second try; doubled each time */
	PEER_RETRY_MOST_MS = 30 * 1000, /* the longest pause */
	PEER_ANSWER_BYTES = 64 << 20,   /* of an answer that is read as a whole */
	PEER_URL_BYTES = 7000,          /* of a URL; some servers refuse longer ones */
	PEER_COOKIE_BYTES = 1024,
	PEER_SETTLE_MS = 5000, /* how long a run that is being stopped waits for an end */
};

/*
 * The AuthSession cookie by which this server knows a user of its own, in the arena.
 * STATUS_NOT_FOUND if there is no such user any more. Any thread.
 */
typedef enum status replicator_cookie(void *arg, struct str user, struct arena *arena,
				      struct str *ret);

/* What all replications of a process share. It does not change while they run. */
struct peer_env {
	struct net *net;
	replicator_cookie *cookie;
	void *cookie_arg;
	const char *self;  /* this server's own URL, with a slash behind */
	size_t job_bytes;  /* of memory that a run may take */
	bool http_allowed; /* as valid_endpoint_protocols has it */
	bool https_allowed;
};

struct peer {
	const struct peer_env *env;
	const struct repl_end *end;
	const struct repl_spec *spec;
	struct net_scope *scope;
	struct budget_part *part; /* counts the memory of the run */
	char *url;                /* of the database, with a slash behind */
	bool no_bulk;             /* the end has refused _bulk_get; it is not asked again */
	bool encodings; /* the end takes attachments gzipped, as they are stored at the other */
	bool hasty;     /* the run is being stopped: one try, and PEER_SETTLE_MS for it */
};

/* STATUS_NOMEM; STATUS_UNSUPPORTED for a protocol that is not allowed. */
MUST_USE enum status peer_init(struct peer *p, const struct peer_env *env,
			       const struct repl_end *end, const struct repl_spec *spec,
			       struct net_scope *scope, struct budget_part *part, struct err *err);
void peer_fini(struct peer *p);

/* One request. What is left zero or NULL has its usual value. */
struct peer_request {
	const char *method;
	struct str path;    /* escaped, below the database's URL; ptr NULL: the server's root */
	struct str body;    /* ptr NULL: none */
	const char *type;   /* of the body; NULL: JSON */
	const char *accept; /* NULL: JSON */
	uint64_t stall_ms;  /* 0: as the replication has it */
	bool heartbeats;    /* as net_request has it */
	bool streams;
	uint64_t stream_bytes;
	bool exact; /* the answer's bytes as they are stored: no compression on the way */
};

/*
 * Sends a request, once. Fails as net_open() does, and with STATUS_FORBIDDEN if the owner of a
 * replication of this server's own database is gone.
 */
MUST_USE enum status peer_open(struct peer *p, const struct peer_request *request,
			       struct net_call **ret, struct err *err);

/*
 * Sends a request and reads the whole answer into `ret`, which is cleared first. Tries again where
 * that may help. An answer with an HTTP status that another try would not change is a success.
 * STATUS_IO, STATUS_TIMEOUT, STATUS_LIMIT, STATUS_CANCELLED.
 */
MUST_USE enum status peer_ask(struct peer *p, const struct peer_request *request, int *ret_status,
			      struct buf *ret, struct err *err);

/* Appends what is left of an answer. STATUS_LIMIT past the buffer's maximum; else as net_read(). */
MUST_USE enum status peer_read_all(struct net_call *c, struct buf *ret, struct err *err);

/* Takes one row of an answer. Its text is valid until the function returns. */
typedef enum status peer_take_row(void *arg, struct str row, struct err *err);

/*
 * Reads a long answer row by row. A failure of `take` ends it and is returned. `*ret_rest` is the
 * answer's object without its rows; it lies in `rows`, which the caller makes and releases.
 * STATUS_JSON_SYNTAX, without an explanation: the answer is cut off.
 */
MUST_USE enum status peer_read_rows(struct rows *rows, struct net_call *call, peer_take_row *take,
				    void *arg, struct str *ret_rest, struct err *err);

/* True if another try may help: for an answer of that HTTP status, for a failure. */
bool peer_status_passes(int http_status); /* 408, 429, 5xx */
bool peer_may_retry(enum status status);

/* How many tries of a request are left, and how long to pause before the next one. */
struct peer_tries {
	unsigned left;
	uint64_t pause_ms;
};
struct peer_tries peer_tries(const struct peer *p);
/*
 * After a try that failed with `status`: waits for the pause and returns STATUS_OK if the caller
 * should try again; `status` if not; STATUS_CANCELLED if the run is stopped meanwhile.
 */
MUST_USE enum status peer_try_again(struct peer *p, struct peer_tries *t, enum status status,
				    struct err *err);

/* Explains an answer that is an error, in CouchDB's words: "unauthorized: …". */
enum status peer_refused(const struct peer *p, const struct peer_request *request, int http_status,
			 struct err *err);

/* Appends a document's id as it stands in a path: the slash of "_design/" is not escaped. */
void peer_escape_id(struct buf *b, struct str id);

#endif
