/*
 * What one replication is to do: the JSON object of POST /_replicate and of the documents of
 * _replicator, read and checked. A spec owns its arena and everything in it, and is not changed
 * after it was made, so any thread may read it.
 */
#ifndef FROND_REPLICATOR_SPEC_H
#define FROND_REPLICATOR_SPEC_H

#include "base/arena.h"
#include "replicator/net.h"

enum {
	SPEC_ARENA_BYTES = 16 * 1024 * 1024,
	SPEC_HEADERS = 8, /* of its own that an end may have */
	SPEC_ID_BYTES = 32,
	SPEC_FULL_ID_BYTES = 96, /* with "+continuous+create_target" behind */
	SPEC_WORKERS_MAX = 32,
	SPEC_BATCH_MAX = 10000,
	SPEC_VERSION = 4, /* of how ids of replications are made */
};

/* One end. Texts end in NUL. */
struct repl_end {
	bool local;      /* a database of this server, by its name */
	struct str name; /* as people see it: the URL without credentials */
	struct str url;  /* without credentials, with a slash behind; if local, the name */
	const char *user;
	const char *password;
	const char *proxy; /* NULL: none */
	struct net_header headers[SPEC_HEADERS];
	size_t headers_count;
};

/* The defaults of what a replication may choose, as the section [replicator] has them. */
struct repl_defaults {
	const char *self; /* this server's URL with a slash behind, for names of local databases */
	unsigned workers;
	unsigned batch;
	unsigned connections;
	uint64_t timeout_ms;
	unsigned retries;
	bool use_checkpoints;
	bool use_bulk_get;
	uint64_t checkpoint_ms;
};

struct repl_spec {
	struct arena *arena;
	struct repl_end source;
	struct repl_end target;
	bool cancel;
	bool continuous;
	bool create_target;
	struct str create_params; /* a query string without '?', or empty */
	bool by_ids;
	struct str ids;          /* if `by_ids`: a JSON array, sorted, without duplicates */
	struct str selector;     /* a JSON object; ptr NULL: none */
	struct str filter;       /* the name of a function of the source; ptr NULL: none */
	struct str query_params; /* of the filter: a JSON object; ptr NULL: none */
	struct str since;        /* a sequence as JSON; ptr NULL: none */
	bool winners_only;
	struct repl_defaults options;
	struct str given_id; /* of the job to be cancelled; ptr NULL: none */
	struct str owner;    /* the user whose permissions it has here; empty: anonymous */
	struct str doc_id;   /* of its document in _replicator; ptr NULL: it came by POST */
};

/*
 * Reads `text`, a JSON object; keeps copies of all texts. STATUS_INVALID, explained in CouchDB's
 * words; STATUS_NOMEM; STATUS_LIMIT past SPEC_ARENA_BYTES.
 */
MUST_USE enum status repl_spec_new(struct str text, struct str owner, struct str doc_id,
				   const struct repl_defaults *defaults, struct repl_spec **ret,
				   struct err *err);
void repl_spec_free(struct repl_spec *spec); /* NULL is fine */

/*
 * The id of a replication, which names its checkpoints unless it has a filter function. It is the
 * same whenever the work is the same, also after a restart: passwords and the usual ports do not
 * count. `store` is the store's own id. `ret_full` is the id with a suffix for the options, by
 * which the job is known.
 */
void repl_spec_id(const struct repl_spec *spec, struct str store, char ret[SPEC_ID_BYTES + 1],
		  char ret_full[SPEC_FULL_ID_BYTES]);

/* True if the filter is a function of a design document of the source; then where its slash is. */
bool repl_spec_filters_by_function(const struct repl_spec *spec, size_t *ret_slash);

/*
 * The id that names the checkpoints of a replication under a filter function of this text. It is in
 * the arena; ptr NULL when that is full.
 */
struct str repl_spec_filtered_id(const char *id, struct str function, struct arena *arena);

#endif
