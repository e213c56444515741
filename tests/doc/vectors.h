/*
 * Reads the vectors in tests/doc/vectors: lines of a kind, what the scalar has, and the bytes that
 * it becomes, separated by tabs. vectors/README.md has the format.
 */
#ifndef FROND_TESTS_DOC_VECTORS_H
#define FROND_TESTS_DOC_VECTORS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "doc/scalar.h"

enum {
	VECTORS_LINE_BYTES = 1 << 16,
	VECTORS_FIELDS = 8,
};

struct vectors {
	FILE *file;
	struct arena *arena;
	size_t line;
	char text[VECTORS_LINE_BYTES];
	char *fields[VECTORS_FIELDS]; /* the first is the kind, the last the bytes */
	size_t count;
	struct doc_scalar scalar;
	struct str bytes;
};

static inline void
vectors_open(struct vectors *v, const char *path)
{
	*v = (struct vectors){ .file = fopen(path, "r"), .arena = arena_new(1 << 26) };
	assert_non_null(v->file);
	assert_non_null(v->arena);
}

static inline void
vectors_close(struct vectors *v)
{
	fclose(v->file);
	arena_free(v->arena);
}

static inline struct str
vectors_bytes(struct vectors *v, const char *hex)
{
	size_t len = strlen(hex) / 2;
	char *bytes = arena_bytes(v->arena, len + 1);

	for (size_t i = 0; i < len; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		bytes[i] = (char)strtoul(digits, NULL, 16);
	}
	return str_of(bytes, len);
}

static inline void
vectors_float(struct vectors *v, const char *hex, size_t bytes)
{
	uint64_t bits = strtoull(hex, NULL, 16);
	uint32_t half = (uint32_t)bits;

	if (bytes == sizeof(bits))
		memcpy(&v->scalar.d, &bits, sizeof(bits));
	else
		memcpy(&v->scalar.f, &half, sizeof(half));
}

static inline struct str
vectors_magnitude(struct vectors *v, const char *hex)
{
	v->scalar.negative = hex[0] == '-';
	return vectors_bytes(v, hex + v->scalar.negative);
}

static const struct {
	const char *name;
	enum doc_kind kind;
	const char *form; /* a letter for each field: see vectors_field() */
} vectors_kinds[] = {
	{ "null", DOC_NULL, "" },
	{ "bool", DOC_BOOL, "t" },
	{ "text", DOC_TEXT, "x" },
	{ "bytes", DOC_BYTES, "x" },
	{ "int64", DOC_INT64, "n" },
	{ "double", DOC_DOUBLE, "d" },
	{ "float", DOC_FLOAT, "f" },
	{ "number", DOC_NUMBER, "dx" },
	{ "uuid", DOC_UUID, "x" },
	{ "array", DOC_EMPTY_ARRAY, "" },
	{ "object", DOC_EMPTY_OBJECT, "" },
	{ "int32", DOC_INT32, "n" },
	{ "int16", DOC_INT16, "n" },
	{ "int8", DOC_INT8, "n" },
	{ "integer", DOC_INTEGER, "i" },
	{ "decimal128", DOC_DECIMAL128, "q" },
	{ "decimal", DOC_DECIMAL, "ni" },
	{ "binary", DOC_BINARY, "nx" },
	{ "date", DOC_DATE, "n" },
	{ "day", DOC_DAY, "n" },
	{ "time", DOC_TIME, "n" },
	{ "duration", DOC_DURATION, "mwn" },
	{ "timeuuid", DOC_TIMEUUID, "x" },
	{ "object_id", DOC_OBJECT_ID, "x" },
	{ "timestamp", DOC_TIMESTAMP, "u" },
	{ "regex", DOC_REGEX, "xy" },
	{ "code", DOC_CODE, "x" },
	{ "code_scope", DOC_CODE_SCOPE, "xy" },
	{ "symbol", DOC_SYMBOL, "x" },
	{ "db_pointer", DOC_DB_POINTER, "xy" },
	{ "undefined", DOC_UNDEFINED, "" },
	{ "min_key", DOC_MIN_KEY, "" },
	{ "max_key", DOC_MAX_KEY, "" },
	{ "inet", DOC_INET, "x" },
};

static inline void
vectors_field(struct vectors *v, char form, const char *field)
{
	struct doc_scalar *s = &v->scalar;

	switch (form) {
	case 't':
		s->truth = !strcmp(field, "true");
		return;
	case 'x':
		s->text = vectors_bytes(v, field);
		return;
	case 'y':
		s->more = vectors_bytes(v, field);
		return;
	case 'n':
		s->n = strtoll(field, NULL, 10);
		return;
	case 'u':
		s->n = (int64_t)strtoull(field, NULL, 10);
		return;
	case 'm':
		s->months = (int32_t)strtol(field, NULL, 10);
		return;
	case 'w':
		s->days = (int32_t)strtol(field, NULL, 10);
		return;
	case 'd':
		vectors_float(v, field, sizeof(s->d));
		return;
	case 'f':
		vectors_float(v, field, sizeof(s->f));
		return;
	case 'i':
		s->text = vectors_magnitude(v, field);
		return;
	default: {
		struct str q = vectors_bytes(v, field);

		for (size_t i = 0; i < 8; i++) {
			s->high = s->high << 8 | (uint8_t)q.ptr[i];
			s->low = s->low << 8 | (uint8_t)q.ptr[8 + i];
		}
	}
	}
}

static inline void
vectors_parse(struct vectors *v)
{
	size_t kind = 0;

	while (strcmp(vectors_kinds[kind].name, v->fields[0]) != 0)
		assert_true(++kind < sizeof(vectors_kinds) / sizeof(vectors_kinds[0]));
	v->scalar = (struct doc_scalar){ .kind = vectors_kinds[kind].kind };
	assert_int_equal(v->count, strlen(vectors_kinds[kind].form) + 2);
	for (size_t i = 1; i + 1 < v->count; i++)
		vectors_field(v, vectors_kinds[kind].form[i - 1], v->fields[i]);
	v->bytes = vectors_bytes(v, v->fields[v->count - 1]);
}

/* The next scalar and its bytes; false at the end. */
static inline bool
vectors_next(struct vectors *v)
{
	do {
		if (!fgets(v->text, sizeof(v->text), v->file))
			return false;
		v->line++;
	} while (v->text[0] == '#' || v->text[0] == '\n');
	v->text[strcspn(v->text, "\n")] = 0;
	v->count = 0;
	for (char *at = v->text; at; v->count++) {
		char *tab = strchr(at, '\t');

		assert_true(v->count < VECTORS_FIELDS);
		v->fields[v->count] = at;
		if (tab)
			*tab++ = 0;
		at = tab;
	}
	vectors_parse(v);
	return true;
}

#endif
