/*
 * Checks a store against everything that has to hold between its keys, as README.md lists it, and
 * tells of what does not. Reads all of it, once, and memory does not grow with it (but for eight
 * bytes a database): ranges are gone through side by side where their order agrees, and single keys
 * are looked up where it does not.
 *
 * One transaction sees one version, so writers may go on; on an engine that keeps versions for
 * seconds only, this is for small databases.
 */
#ifndef FROND_MODEL_VERIFY_H
#define FROND_MODEL_VERIFY_H

#include "model/revisioned/revisioned.h"

enum rev_finding_kind {
	REV_FINDING_KEY,          /* a key that means nothing where it is */
	REV_FINDING_VALUE,        /* a value that cannot be read */
	REV_FINDING_NO_DATABASE,  /* keys of a database that does not exist */
	REV_FINDING_DATABASE,     /* a database's name or number cannot be right */
	REV_FINDING_WINNER,       /* a Sequence at a branch that is no winner, or at none */
	REV_FINDING_BRANCH_COUNT, /* the winner counts other branches than there are */
	REV_FINDING_SEQUENCE,     /* a Sequence from the future: later ones may sort before it */
	REV_FINDING_CHANGE,       /* no entry in CHANGES for a winner, or one that is not its */
	REV_FINDING_CHANGE_STRAY, /* an entry in CHANGES that no winner has the Sequence of */
	REV_FINDING_ENTRY,        /* no entry in ALL_DOCS for a live winner, or one not its */
	REV_FINDING_ENTRY_STRAY,  /* an entry in ALL_DOCS for no document, or a deleted one */
	REV_FINDING_COUNTER,      /* a counter does not equal the count */
	REV_FINDING_TALLY,        /* counters of a range do not equal the count */
	REV_FINDING_BODY,         /* a live leaf has no body */
	REV_FINDING_BODY_STRAY,   /* a body of what is no leaf */
	REV_FINDING_BODY_ROOT,    /* a body's leaves lie under no root */
	REV_FINDING_BODY_CORRUPT, /* leaves make no document, or are not known */
	REV_FINDING_ATT,          /* an attachment has not the data that it should */
	REV_FINDING_ATT_COUNT,    /* its counter is not the number of revisions that have it */
	REV_FINDING_ATT_STRAY,    /* an attachment's data that no revision has */
	REV_FINDING_KINDS
};

/* The kind's stable name, such as "branch_count"; static. */
const char *rev_finding_name(enum rev_finding_kind kind);

/* Everything is borrowed for the time of the call. */
struct rev_finding {
	enum rev_finding_kind kind;
	struct str database; /* ptr NULL: the store's own keys, or those of no database */
	struct str key;      /* where; for something missing, where it should be */
	const char *text;    /* what is wrong */
};

struct rev_verify_sum {
	uint64_t databases;
	uint64_t documents; /* with a winner, deleted or not; local ones are not counted */
	uint64_t leaves;    /* of bodies, local documents' included */
	uint64_t packed;    /* bodies that have no leaves, likewise */
	uint64_t keys;      /* read, single ones looked up aside */
	uint64_t bytes;     /* of those keys and their values */
	uint64_t findings;
};

struct rev_verify_options {
	void (*found)(const struct rev_finding *finding, void *arg);
	/* Called now and then with the sums so far; NULL for not at all. */
	void (*progress)(const struct rev_verify_sum *sum, void *arg);
	void *arg;
};

/*
 * Checks the whole store, or (rev_verify_db) one database alone. Findings are no failure; those are
 * STATUS_NOT_FOUND for a database that is not there, STATUS_NOMEM, STATUS_LIMIT, and what the store
 * itself answers to reads. `ret` has the sums in any case.
 */
MUST_USE enum status rev_verify_store(struct kv_tx *tx, const struct rev_verify_options *options,
				      struct rev_verify_sum *ret, struct err *err);
MUST_USE enum status rev_verify_db(struct kv_tx *tx, struct str name,
				   const struct rev_verify_options *options,
				   struct rev_verify_sum *ret, struct err *err);

/*
 * The same for a database that nobody writes to, which may have no name yet: in as many
 * transactions as it takes, on any engine.
 */
MUST_USE enum status rev_verify_still(struct kv_store *store, const struct rev_db *db,
				      const struct rev_verify_options *options,
				      struct rev_verify_sum *ret, struct err *err);

#endif
