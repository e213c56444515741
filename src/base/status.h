/*
 * Outcomes and their explanations.
 *
 * Every fallible function returns an `enum status`. Where a client or an operator is going to read
 * about the failure, the function also takes a `struct err *` that the caller owns: whoever
 * discovers the failure fills it once, with err_set(), and everybody above passes it on. Each door
 * maps a status to its own wire code in one table.
 */
#ifndef FROND_BASE_STATUS_H
#define FROND_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum status {
	STATUS_OK = 0,

	/* Resources and the machine. */
	STATUS_NOMEM,       /* an allocation failed */
	STATUS_LIMIT,       /* a named limit of this process was reached; retrying later may help */
	STATUS_IO,          /* the disk or the network refused */
	STATUS_CORRUPT,     /* stored bytes do not mean anything */
	STATUS_UNAVAILABLE, /* the store cannot be reached, or is closing */
	STATUS_LOCKED,      /* another process holds the store */
	STATUS_TIMEOUT,
	STATUS_CANCELLED,

	/* Transactions. */
	STATUS_TX_CONFLICT,   /* something that was read has changed: run the body again */
	STATUS_TX_TOO_OLD,    /* the read version is no longer kept: run the body again */
	STATUS_TX_UNKNOWN,    /* the commit may or may not have happened */
	STATUS_TX_USED,       /* the transaction was already committed or cancelled */
	STATUS_TX_UNREADABLE, /* a read met a versionstamp that is not known before the commit */
	STATUS_TX_TOO_LARGE,
	STATUS_KEY_TOO_LARGE,
	STATUS_VALUE_TOO_LARGE,

	/* What was asked for. */
	STATUS_INVALID,     /* an argument or a request does not make sense */
	STATUS_UNSUPPORTED, /* it makes sense, and is not offered */
	STATUS_NOT_FOUND,
	STATUS_DELETED, /* it was there and has been deleted */
	STATUS_EXISTS,
	STATUS_DOC_CONFLICT, /* the revision named is not a leaf that can be extended */
	STATUS_ATT_MISSING,  /* an attachment to be kept is not there, or is not that one */
	STATUS_UNAUTHORIZED,
	STATUS_FORBIDDEN,

	/* JSON text and the trees in it. */
	STATUS_JSON_SYNTAX,
	STATUS_JSON_UTF8,
	STATUS_JSON_DEPTH,
	STATUS_DOC_TOO_LARGE,
	STATUS_PATH_TOO_LONG,
	STATUS_PATCH_FAILED, /* a patch's test fails, or a place that it names is not there */

	STATUS_COUNT
};

enum {
	ERR_TEXT_BYTES = 512, /* longer explanations are cut, and end in "..." */
};

/* Explains one failure. A plain value; `{0}` is "no failure". */
struct err {
	enum status status;
	char text[ERR_TEXT_BYTES];
};

/*
 * Records a failure; its value is `status`, so that callers write `return err_set(...)`. `err` may
 * be NULL. The last call wins. A macro, so that the compiler sees that the value is no STATUS_OK
 * and follows which outputs are set.
 */
#define err_set(err, code, ...)                                                                    \
	({                                                                                         \
		enum status err_status_ = (code);                                                  \
		err_write((err), err_status_, __VA_ARGS__);                                        \
		err_status_;                                                                       \
	})

void err_write(struct err *err, enum status status, const char *fmt, ...) PRINTF(3, 4);

/* The status's stable lower-case name, such as "tx_conflict"; static. */
const char *status_name(enum status status);

/* Returns from the calling function unless `expr` is STATUS_OK. */
#define TRY(expr)                                                                                  \
	do {                                                                                       \
		enum status try_status_ = (expr);                                                  \
		if (try_status_ != STATUS_OK)                                                      \
			return try_status_;                                                        \
	} while (0)

/* Calls `fn(&variable)` when the variable goes out of scope. */
#define AUTO(fn) __attribute__((cleanup(fn)))

#endif
