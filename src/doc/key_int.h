/* What the files of keys share: the first byte of each component. Stored: never renumber. */
#ifndef FROND_DOC_KEY_INT_H
#define FROND_DOC_KEY_INT_H

#include "doc/key.h"

enum key_class {
	KEY_END = 0x00, /* of a container */
	KEY_MIN = 0x04,
	KEY_UNDEFINED = 0x06,
	KEY_NULL = 0x08,
	KEY_COUCH_FALSE = 0x10,
	KEY_COUCH_TRUE = 0x11,
	KEY_NUMBERS = 0x20, /* any of those that follow, as the type of a member's value */
	KEY_NAN = 0x20,
	KEY_MINUS_INFINITY = 0x21,
	KEY_MINUS_HUGE = 0x22,
	KEY_MINUS = 0x23,
	KEY_MINUS_TINY = 0x24,
	KEY_ZERO = 0x25,
	KEY_PLUS_TINY = 0x26,
	KEY_PLUS = 0x27,
	KEY_PLUS_HUGE = 0x28,
	KEY_PLUS_INFINITY = 0x29,
	KEY_DOUBLE_BITS = 0x2c,
	KEY_FLOAT_BITS = 0x2d,
	KEY_TEXT = 0x30,
	KEY_COUCH_ARRAY = 0x34,
	KEY_COUCH_OBJECT = 0x36,
	KEY_BSON_OBJECT = 0x38,
	KEY_BSON_ARRAY = 0x40,
	KEY_BINARY = 0x48, /* by length first */
	KEY_BYTES = 0x4c,
	KEY_OBJECT_ID = 0x50,
	KEY_FALSE = 0x58,
	KEY_TRUE = 0x59,
	KEY_DATE = 0x60,
	KEY_TIMESTAMP = 0x68,
	KEY_REGEX = 0x70,
	KEY_DB_POINTER = 0x78,
	KEY_CODE = 0x80,
	KEY_CODE_SCOPE = 0x88,
	KEY_UUID = 0x90,
	KEY_TIMEUUID = 0x98,
	KEY_DAY = 0xa0,
	KEY_TIME = 0xa8,
	KEY_DURATION = 0xb0,
	KEY_INET = 0xb8,
	KEY_RAW_FALSE = 0xc0,
	KEY_RAW_NULL = 0xc1,
	KEY_RAW_TRUE = 0xc2,
	KEY_RAW_OBJECT = 0xc4,
	KEY_RAW_ARRAY = 0xc6,
	KEY_RAW_TEXT = 0xc8,
	KEY_MAX = 0xf0,
};

/* Reads the bytes of a component, inverted back if it is descending. */
struct key_reader {
	const uint8_t *at;
	const uint8_t *end;
	uint8_t mask; /* 0xff: descending */
};

static inline enum status
key_next_byte(struct key_reader *r, uint8_t *ret)
{
	if (r->at == r->end)
		return STATUS_CORRUPT;
	*ret = *r->at++ ^ r->mask;
	return STATUS_OK;
}

/* True for the kinds that share the exact encoding of numbers. */
bool key_is_number(enum doc_kind kind);

/* Appends a number; as doc_key_put(). */
MUST_USE enum status key_put_number(struct buf *key, const struct doc_scalar *s);

/*
 * Reads a number whose first byte has been read, if it is an integer of at most 63 bits, as nearly
 * all are. Returns false for every other one; the reader then stays.
 */
bool key_read_integer(struct key_reader *r, uint8_t first, int64_t *ret);

/* Passes over a number whose first byte has been read; checks no more than where it ends. */
MUST_USE enum status key_skip_number(struct key_reader *r, uint8_t first);

#endif
