/*
 * Outcomes and their explanations.
 *
 * Every function that can fail returns an `enum status`. Where a client or an operator is going to
 * read about the failure, the function also takes a `struct err *` that the caller owns: the
 * function that discovers the failure fills it once, with err_set(), and its callers pass it on.
 * Each door maps a status to its own wire code in one table.
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
	STATUS_NOMEM, /* an allocation failed */
	/* more than a named limit lets one request or one thing have; trying again does not help */
	STATUS_LIMIT,
	STATUS_BUSY,    /* others have what this needs; trying again later may help */
	STATUS_IO,      /* the disk or the network refused */
	STATUS_FULL,    /* the disk has no room; nothing was written */
	STATUS_CORRUPT, /* stored bytes are not valid in their format */
	/* a newer frond stored the bytes, in a format that this one does not know */
	STATUS_NEWER,
	STATUS_UNAVAILABLE, /* the store cannot be reached, or is closing */
	STATUS_STANDBY,     /* the store follows another one, which alone takes writes */
	STATUS_LOCKED,      /* another process holds the store */
	STATUS_TIMEOUT,
	STATUS_CANCELLED,
	STATUS_TOO_MANY, /* a queue for clients is full; trying again later helps */
	STATUS_STEPS,    /* the work takes more steps than one request may (loop/step.h) */
	STATUS_FUNCTION, /* a function of a design document failed (js/js.h) */

	/* Transactions. */
	/* another transaction changed what this one read: run the body again */
	STATUS_TX_CONFLICT,
	STATUS_TX_TOO_OLD,    /* the read version is no longer kept: run the body again */
	STATUS_TX_UNKNOWN,    /* the commit may or may not have happened */
	STATUS_TX_USED,       /* the transaction was already committed or cancelled */
	STATUS_TX_UNREADABLE, /* a read found a versionstamp that is only known after the commit */
	STATUS_TX_TOO_LARGE,
	STATUS_KEY_TOO_LARGE,
	STATUS_VALUE_TOO_LARGE,

	/* What was asked for. */
	STATUS_INVALID,     /* an argument or a request does not make sense */
	STATUS_UNSUPPORTED, /* the request makes sense, but frond does not offer it */
	STATUS_NOT_FOUND,
	STATUS_DELETED, /* it existed and has been deleted */
	STATUS_EXISTS,
	STATUS_DOC_CONFLICT, /* the named revision is not a head that can be extended */
	STATUS_DUPLICATE,    /* a unique index has these values from another document */
	/* an attachment that an edit keeps does not exist, or is a different one */
	STATUS_ATT_MISSING,
	STATUS_PARTITION_FULL, /* the edit makes a partition larger that is full already */
	STATUS_UNAUTHORIZED,
	STATUS_FORBIDDEN,
	STATUS_UNVETTED, /* validators have to see what is written first; nothing was written */
	STATUS_ANSWERED, /* the client has made an error, and has been told of it already */

	/* JSON text and the trees in it. */
	STATUS_JSON_SYNTAX,
	STATUS_JSON_UTF8,
	STATUS_JSON_DEPTH,
	STATUS_DOC_TOO_LARGE,
	STATUS_PATH_TOO_LONG,
	/* a test of the patch fails, or a place that the patch names does not exist */
	STATUS_PATCH_FAILED,

	STATUS_COUNT
};

enum {
	ERR_TEXT_BYTES = 512, /* a longer explanation is cut and ends in "..." */
};

/* Explains one failure. A plain value; `{0}` is "no failure". */
struct err {
	enum status status;
	char text[ERR_TEXT_BYTES];
};

/*
 * Records a failure in `err`, which may be NULL; a later call replaces an earlier one. The value of
 * the expression is `code`, so that callers write `return err_set(...)`. This is a macro so that
 * the compiler sees that the value is not STATUS_OK and can tell which outputs are set.
 */
#define err_set(err, code, ...)                                                                    \
	({                                                                                         \
		enum status err_status_ = (code);                                                  \
		err_write((err), err_status_, __VA_ARGS__);                                        \
		err_status_;                                                                       \
	})

void err_write(struct err *err, enum status status, const char *fmt, ...) PRINTF(3, 4);

/* Returns the stable lower-case name of the status, such as "tx_conflict". The text is static. */
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
