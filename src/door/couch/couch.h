/*
 * CouchDB's HTTP API (3.5) over model/revisioned: the handler of a server's exchanges.
 */
#ifndef FROND_DOOR_COUCH_COUCH_H
#define FROND_DOOR_COUCH_COUCH_H

#include "kv/kv.h"
#include "model/revisioned/revisioned.h"
#include "replicator/replicator.h"
#include "server/auth.h"
#include "server/config.h"
#include "server/http.h"

/*
 * Who of other origins may use the API from a browser, as CouchDB's section [cors] says it. Texts
 * are lists with commas, the caller's, and outlive the door; NULL: the default.
 */
struct couch_cors_config {
	bool enabled;
	bool credentials;            /* with cookies and authentication */
	const char *origins;         /* "https://example.com", or "*" for all; none by default */
	const char *methods;         /* of a preflight; all by default */
	const char *headers;         /* likewise; those that CouchDB's clients send */
	const char *exposed_headers; /* those that CouchDB's clients read */
	uint64_t max_age_s;          /* of a preflight's answer; 0: COUCH_CORS_MAX_AGE_S */
};

struct couch_config {
	struct kv_store *store; /* the caller's; outlives the door */
	struct auth *auth;      /* likewise */
	/* Likewise; NULL: there is none. */
	struct replicator *replicator;
	enum rev_scheme scheme;      /* of new databases; 0: REV_SCHEME_DEFAULT */
	size_t doc_bytes;            /* of a document's JSON; 0: DOC_LIMIT_DEFAULT_BYTES */
	size_t body_bytes;           /* of a request's body; 0: COUCH_BODY_BYTES */
	const char *backup_dir;      /* the caller's; where backups may go. NULL: nowhere */
	const char *utils_dir;       /* the caller's; the files of /_utils/. NULL: none */
	uint64_t changes_timeout_ms; /* most that a feed waits without a change; 0: 60000 */
	uint64_t att_bytes;          /* of an attachment as it comes in; 0: no limit */
	int gzip_level; /* 1 to 9; 0: COUCH_GZIP_LEVEL; less: attachments stay as they come */
	/* Content types, separated by commas, that are compressed; NULL: COUCH_GZIP_TYPES. The
	 * caller's. */
	const char *gzip_types;
	int answer_gzip_level; /* 1 to 9: of JSON answers that clients accept as gzip; 0: none */
	struct couch_cors_config cors;
	/*
	 * The settings that the server was started with, the caller's, which outlive the door. With
	 * them couch_start() finds those that the store has and all servers of it share, and `auth`
	 * and what couch_config_set() sets follow them from then on. NULL: nothing ever changes.
	 */
	const struct config *started;
};

/* Sets what settings say of the door: everything but store, auth and `started`. */
void couch_config_set(struct couch_config *ret, const struct config *config);

#define COUCH_GZIP_TYPES "text/*, application/javascript, application/json, application/xml"

enum {
	COUCH_BODY_BYTES = 64 * 1024 * 1024,
	COUCH_CHANGES_TIMEOUT_MS = 60000,
	COUCH_GZIP_LEVEL = 8,       /* CouchDB's: the digest of what is compressed depends on it */
	COUCH_CORS_MAX_AGE_S = 600, /* CouchDB's */
};

struct couch;

/* Copies `config`. NULL when out of memory. */
struct couch *couch_new(const struct couch_config *config);

/*
 * Reads the settings in the store, and writes the secret of cookies there if nobody has set one, so
 * that it outlives the process and is that of all servers. Before the first request; does nothing
 * without `started`. STATUS_INVALID for settings that leave nobody in charge; errors of the store.
 */
MUST_USE enum status couch_start(struct couch *couch, struct err *err);

/* A fresh AuthSession cookie of the user by the present settings: a replicator_cookie. */
MUST_USE enum status couch_make_cookie(void *couch, struct str user, struct arena *arena,
				       struct str *ret);

void couch_free(struct couch *couch); /* after the server has been freed; NULL is fine */

/*
 * What keeps answers quick that say how many rows there are elsewhere: see rev_tallies_tend(). Call
 * it now and then, from one thread; at once again while there is more.
 */
MUST_USE enum status couch_tend(struct couch *couch, bool *ret_more, struct err *err);

/* For struct server_config: handler, loop_new and loop_free, with the door as `arg`. */
void couch_handle(struct http_exchange *x, void *couch);
void *couch_loop_new(void *couch);
void couch_loop_free(void *context);

#endif
