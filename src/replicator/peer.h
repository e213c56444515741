/*
 * One end of a replication: its requests, with what every one of them carries and how often they
 * are tried again. A database of this server is reached through its own listener like any other, as
 * the owner of the replication: what a replicator may see and write is the door's to say, and is
 * said once.
 */
#ifndef FROND_REPLICATOR_PEER_H
#define FROND_REPLICATOR_PEER_H

#include "replicator/net.h"
#include "replicator/spec.h"

enum {
	PEER_RETRY_MS = 250,            /* before the first further try; doubled each time */
	PEER_RETRY_MOST_MS = 30 * 1000, /* and no more than that */
	PEER_ANSWER_BYTES = 64 << 20,   /* of an answer that is read whole */
	PEER_URL_BYTES = 7000,          /* of a URL: longer ones are refused by some servers */
	PEER_COOKIE_BYTES = 1024,
	PEER_SETTLE_MS = 5000, /* an end that is being left has so long to answer */
};

/* The AuthSession cookie by which this server knows a user of its own, in the arena. Any thread. */
typedef enum status replicator_cookie(void *arg, struct str user, struct arena *arena,
				      struct str *ret);

/* What all replications of a process share. */
struct peer_env {
	struct net *net;
	replicator_cookie *cookie;
	void *cookie_arg;
	const char *self;  /* this server's own URL, with a slash behind */
	bool http_allowed; /* as valid_endpoint_protocols has it */
	bool https_allowed;
};

struct peer {
	const struct peer_env *env;
	const struct repl_end *end;
	const struct repl_spec *spec;
	struct net_scope *scope;
	char *url;      /* of the database, with a slash behind */
	bool no_bulk;   /* it has no usable _bulk_get */
	bool encodings; /* it takes attachments as they are stored elsewhere, gzipped */
	bool hasty;     /* one try, and not for long: the replication is being stopped */
};

/* STATUS_NOMEM; STATUS_UNSUPPORTED for a protocol that is not allowed. */
MUST_USE enum status peer_init(struct peer *p, const struct peer_env *env,
			       const struct repl_end *end, const struct repl_spec *spec,
			       struct net_scope *scope, struct err *err);
void peer_fini(struct peer *p);

/* Of one request; zero and NULL are the usual. */
struct peer_request {
	const char *method;
	struct str path;    /* escaped, below the database's URL; ptr NULL: the server's root */
	struct str body;    /* ptr NULL: none */
	const char *type;   /* of the body; NULL: JSON */
	const char *accept; /* NULL: JSON */
	uint64_t stall_ms;  /* 0: as the replication has it */
	bool streams;
	uint64_t stream_bytes;
	bool exact; /* the bytes as they are: no compression on the way */
};

/* Sends it. One try. As net_open(). */
MUST_USE enum status peer_open(struct peer *p, const struct peer_request *request,
			       struct net_call **ret, struct err *err);

/*
 * The whole answer, tried again where that may help; any HTTP status that a further try would not
 * change is a success. `ret` is cleared first. STATUS_IO, STATUS_TIMEOUT, STATUS_LIMIT,
 * STATUS_CANCELLED.
 */
MUST_USE enum status peer_ask(struct peer *p, const struct peer_request *request, int *ret_status,
			      struct buf *ret, struct err *err);

/* Reads what is left of an answer. */
MUST_USE enum status peer_read_all(struct net_call *c, struct buf *ret, struct err *err);

/* Whether a further try may help. */
bool peer_status_passes(int http_status); /* not yet: 429 and 5xx do */
bool peer_may_retry(enum status status);

/* The pauses between tries. */
struct peer_tries {
	unsigned left;
	uint64_t pause_ms;
};
struct peer_tries peer_tries(const struct peer *p);
/* STATUS_OK: try again. Otherwise `status`, or STATUS_CANCELLED. */
MUST_USE enum status peer_try_again(struct peer *p, struct peer_tries *t, enum status status,
				    struct err *err);

/* Explains an answer: "http_error_code"-like, "unauthorized", "db_not_found", as CouchDB does. */
enum status peer_refused(const struct peer *p, const struct peer_request *request, int http_status,
			 struct err *err);

/* Appends a document's id as it stands in a path. */
void peer_escape_id(struct buf *b, struct str id);

#endif
