/*
 * What comes with a statement: values, consistency, pages; and the messages that have several of
 * these. Everything is borrowed from the body of the frame, arrays lie in the arena.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_WIRE_PARAMS_H
#define FROND_DOOR_CQL_WIRE_PARAMS_H

#include "door/cql/wire/frame.h"

enum {
	PARAMS_VALUES = 65535, /* of a statement: their number has 16 bits */
};

/* Levels of consistency. All mean the same here; those that are no level are refused. */
enum params_consistency {
	PARAMS_ANY = 0x0000,
	PARAMS_ONE = 0x0001,
	PARAMS_QUORUM = 0x0004,
	PARAMS_SERIAL = 0x0008,
	PARAMS_LOCAL_SERIAL = 0x0009,
	PARAMS_LOCAL_ONE = 0x000a,
};

/* Bits of the flags of parameters. */
enum params_flag {
	PARAMS_HAS_VALUES = 1 << 0,
	PARAMS_SKIP_METADATA = 1 << 1,
	PARAMS_HAS_PAGE_SIZE = 1 << 2,
	PARAMS_HAS_PAGING_STATE = 1 << 3,
	PARAMS_HAS_SERIAL = 1 << 4,
	PARAMS_HAS_TIMESTAMP = 1 << 5,
	PARAMS_HAS_NAMES = 1 << 6,
	PARAMS_HAS_KEYSPACE = 1 << 7, /* version 5, like the next */
	PARAMS_HAS_NOW = 1 << 8,
};

struct params_value {
	enum frame_bytes kind;
	struct str bytes;
	struct str name; /* with PARAMS_HAS_NAMES */
};

struct params {
	unsigned consistency;
	unsigned flags;
	struct params_value *values;
	size_t value_count;
	int32_t page_size;       /* 0: the client wants all rows */
	struct str paging_state; /* empty: the first page */
	unsigned serial_consistency;
	int64_t timestamp; /* microseconds, of PARAMS_HAS_TIMESTAMP */
	struct str keyspace;
	int32_t now_s; /* of PARAMS_HAS_NOW */
};

/*
 * Reads the parameters of a QUERY or an EXECUTE of that version. STATUS_INVALID, explained;
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status params_read(struct frame_in *in, unsigned version, struct arena *arena,
				 struct params *ret, struct err *err);

enum batch_type {
	BATCH_LOGGED = 0,
	BATCH_UNLOGGED = 1,
	BATCH_COUNTER = 2,
};

struct batch_statement {
	bool is_prepared;
	struct str text; /* or the id, if it is prepared */
	struct params_value *values;
	size_t value_count;
};

struct batch {
	enum batch_type type;
	struct batch_statement *statements;
	size_t count;
	struct params params; /* without values */
};

/* Reads the body of a BATCH. Fails as params_read() does. */
MUST_USE enum status batch_read(struct frame_in *in, unsigned version, struct arena *arena,
				struct batch *ret, struct err *err);

#endif
