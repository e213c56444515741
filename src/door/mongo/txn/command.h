/*
 * What a command is: a row of the table (table.c), and a call of it.
 *
 * A handler appends the members of its answer to call->reply and returns STATUS_OK; `ok` and what
 * else is in each answer follows by itself. A handler that fails returns another status, and
 * whatever it has appended is dropped: call_fail() has MongoDB's code and text for the client; a
 * status without that comes from below, and error.h has its code.
 */
#ifndef FROND_DOOR_MONGO_TXN_COMMAND_H
#define FROND_DOOR_MONGO_TXN_COMMAND_H

#include "base/arena.h"
#include "bson/bson.h"
#include "door/mongo/txn/fail.h"
#include "door/mongo/txn/rights.h"
#include "door/mongo/txn/scripts.h"
#include "door/mongo/wire/error.h"
#include "door/mongo/wire/message.h"

struct call;
struct mongo_client;
struct mongo;
struct txn;
struct access_uses;

enum {
	COMMAND_ARGS = 32,       /* that a command has at most */
	COMMAND_COLLATIONS = 10, /* by which it is run, one after the other */
};

/* Types of a member, as bits. */
enum arg_types {
	ARG_ANY = 0,
	ARG_BOOL = 1 << 0,
	ARG_INT = 1 << 1, /* int, or a number of another type that is one */
	ARG_NUMBER = 1 << 2,
	ARG_STRING = 1 << 3,
	ARG_OBJECT = 1 << 4,
	ARG_ARRAY = 1 << 5,
	ARG_BINARY = 1 << 6,
	ARG_TIMESTAMP = 1 << 7,
	ARG_DOCUMENTS = 1 << 8, /* an array of documents, or a document sequence */
	ARG_REQUIRED = 1 << 16,
	ARG_IGNORED = 1 << 17, /* it is taken, of any type, and does nothing here */
};

struct arg {
	const char *name; /* NULL behind the last one */
	unsigned types;
};

/*
 * Defines the members of a command: the constants by which handlers find them in call->args, and
 * the table. `LIST` is a macro that calls its argument with (constant, name, types) for
 * each member.
 */
#define ARGS_DEFINE(table, LIST)                                                                   \
	enum {                                                                                     \
		LIST(ARG_CONSTANT)                                                                 \
	};                                                                                         \
	const struct arg table[] = { LIST(ARG_ROW){ .name = NULL } }
#define ARG_CONSTANT(constant, name, types) constant,
#define ARG_ROW(constant, name, types)      [constant] = { name, types },

enum command_flags {
	COMMAND_NO_AUTH = 1 << 0,    /* also for one who has not logged in */
	COMMAND_ADMIN_DB = 1 << 1,   /* on the database admin only */
	COMMAND_LENIENT = 1 << 2,    /* members that it does not know are ignored */
	COMMAND_COLLECTION = 1 << 3, /* its own member is a collection's name */
	COMMAND_WRITES = 1 << 4,     /* it changes data */
	COMMAND_PRIVATE = 1 << 5,    /* it is about passwords: currentOp does not show it */
	COMMAND_RETRIES = 1 << 6,    /* a write that may be sent again, with its number (retry.h) */
	COMMAND_IN_TRANSACTION = 1 << 7,   /* it may be one of a transaction (txn.h) */
	COMMAND_ENDS_TRANSACTION = 1 << 8, /* commitTransaction, abortTransaction */
	COMMAND_OWN_TIME = 1 << 9,         /* maxTimeMS means something of its own to it */
	COMMAND_SNAPSHOT = 1 << 10,  /* readConcern "snapshot" also outside of a transaction */
	COMMAND_VERSION_1 = 1 << 11, /* it is of version 1 of the stable API */
	COMMAND_EXPLAINED = 1 << 12, /* explain tells how it would be done */
};

struct command {
	const char *name;
	const char *aliases[2]; /* older names */
	enum status (*run)(struct call *c);
	unsigned needs; /* any of these rights on the database; 0: none */
	unsigned flags;
	const struct arg *args; /* its members */
	const char *help;
};

/* A member of the request that the command has asked for; `given` is false if it is not there. */
struct arg_value {
	bool given;
	struct bson_value value;
	struct str sequence; /* of ARG_DOCUMENTS that came as a sequence; ptr NULL: did not */
};

struct call {
	struct mongo *mongo;
	struct mongo_client *client;
	const struct command *command;
	const struct wire_msg *msg;
	struct str body;
	struct bson_value first; /* the value of the command's own member */
	struct str db;
	struct str collection;               /* of COMMAND_COLLECTION */
	struct arg_value args[COMMAND_ARGS]; /* in the order of command->args */
	struct str collation;                /* of its collection, which it is run by; or empty */
	struct str lsid;                     /* the session's id; ptr NULL: none was sent */
	bool has_number;                     /* txnNumber was sent */
	/* Members were sent that any command may have and call_read_args() has not read. */
	bool has_more;
	bool in_transaction; /* autocommit: false */
	bool starts;         /* startTransaction */
	int64_t number;      /* txnNumber */
	bool linearizable;   /* readConcern "linearizable" */
	bool snapshot;       /* readConcern "snapshot" outside of a transaction (snapshot.h) */
	uint64_t at_version; /* of that, which atClusterTime names; 0: none */
	uint64_t began_ns;
	uint64_t max_ns; /* maxTimeMS, since then; 0: none */
	struct bson_builder *reply;
	struct arena *arena;
	bool exhaust; /* more answers may follow without being asked for */
	bool again;   /* set by the handler: they do, so it is called again */
	struct err err;
	int code;                   /* MongoDB's, of the failure; 0: by the status */
	struct str err_info;        /* of MONGO_DOCUMENT_VALIDATION: a document, in the arena */
	struct str duplicate;       /* of MONGO_DUPLICATE_KEY: members of the answer, likewise */
	struct fail_effect failing; /* what tests want to happen to it */
	uint64_t version;           /* of the store, that it has seen or made; 0: none yet */
	size_t batch_bytes;         /* that its batch may have; 0: it is short so far */
	int64_t cursor;             /* that it has made, of that namespace; 0: none */
	struct str cursor_ns;
	struct txn *txn; /* the transaction that it belongs to, or its snapshot; NULL: none */
	struct access_uses *uses; /* of the transaction that runs (run.c); NULL: none does */
	bool spoils;              /* it has not failed, but its transaction must not be committed */
	bool writes;              /* its transactions write, so a failure tells its concern */
	bool is_unknown;          /* it has failed, and nobody knows whether it has committed */
	bool is_watch;            /* it is of a change stream */
	bool is_strict;           /* apiStrict: it keeps to the stable API */
	struct call_scripts scripts; /* who runs functions that it has sent (data_mql()) */
};

/* The whole table, sorted by name (table.c). */
extern const struct command mongo_commands[];
extern const size_t mongo_command_count;

/* ---- What handlers share (command.c) ---- */

/* By its name, or its older one; NULL: there is none. */
const struct command *mongo_command_find(struct str name);

/* A failure with MongoDB's own code. The value is never STATUS_OK. */
#define call_fail(c, code_, ...)                                                                   \
	({                                                                                         \
		(c)->code = (code_);                                                               \
		err_set(&(c)->err, STATUS_INVALID, __VA_ARGS__);                                   \
	})

/*
 * A failure with MongoDB's code and text for a member of another type than it has to be of.
 * `wanted`: words as "type 'object'"; `format` makes the member's path.
 */
__attribute__((format(printf, 4, 5))) enum status call_type_mismatch(struct call *c,
								     const struct bson_value *v,
								     const char *wanted,
								     const char *format, ...);

/*
 * Reads the members of the body, and the sequences, into c->args, c->db, c->lsid and
 * c->collection, and checks that they are what the command has.
 */
MUST_USE enum status call_read_args(struct call *c);

/* Checks what the request says of the stable API (api.c). */
MUST_USE enum status api_check(struct call *c);
/* Refuses a stage about the server, described by `spec`, to clients that keep to the stable API. */
MUST_USE enum status api_check_stage(struct call *c, struct str stage, struct str spec);

/* Reads c->collection from the command's own member, as COMMAND_COLLECTION does. */
MUST_USE enum status call_read_collection(struct call *c);

/* Checks a whole name, "db.collection". */
MUST_USE enum status call_check_ns(struct call *c, struct str ns);
/* Fails for one who has none of these rights on the database. */
MUST_USE enum status call_check_rights(struct call *c, struct str db, unsigned needs);

/* True for a member that any command may have. */
bool command_is_generic(struct str name);

/* What is left of the command's maxTimeMS; 0: it has none. */
uint64_t call_time_left(const struct call *c);

/*
 * Where the answer is before a handler appends what it may have to take back: then the call goes on
 * from there, and the failure is forgotten.
 */
struct call_mark {
	size_t len;
	size_t depth;
};
struct call_mark call_mark(const struct call *c);
void call_go_back(struct call *c, struct call_mark mark);

/*
 * A command that names no collation compares by that of its collection, which is known once that
 * is opened. It is run without one first, and fails with MONGO_OTHER_COLLATION where there is one
 * (data_check_collation()). Then this goes back, and returns true: c->collation is to be used from
 * now on. `*runs`: 0 before the first one.
 */
bool call_runs_again(struct call *c, struct call_mark mark, unsigned *runs);

static inline bool
call_has(const struct call *c, size_t i)
{
	return c->args[i].given;
}

/* A number as a whole one, as MongoDB takes it: within the bounds of an int64; NaN is 0. */
int64_t call_whole_number(const struct bson_value *v);
/* A number or a boolean of a member, or `otherwise` if it is not there. */
int64_t call_i64(const struct call *c, size_t i, int64_t otherwise);
bool call_bool(const struct call *c, size_t i, bool otherwise);
/* A text of one; empty if it is not there. */
struct str call_text(const struct call *c, size_t i);

/* ---- The handlers of this room; those of cmd/ are in commands.h ---- */

/* txn.c */
extern const struct arg args_end_transaction[];
enum status mongo_run_commit_transaction(struct call *c);
enum status mongo_run_abort_transaction(struct call *c);
/* fail.c */
extern const struct arg args_fail_point[];
enum status mongo_run_fail_point(struct call *c);

#endif
