/* What tests of the limits of tables share: a store without faults, and what is refused in it. */
#ifndef FROND_TESTS_MODEL_TIMED_TABLES_LIMITS_WORLD_H
#define FROND_TESTS_MODEL_TIMED_TABLES_LIMITS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/timed/tables/tables_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "ks.msgs" and "ks.hits", as test_tables.h has them. */
struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

typedef enum status work_body(struct timed *t, void *arg);

/* Runs a transaction with the table opened; NULL: with none. */
enum status run(struct fixture *f, const char *table, work_body *body, void *arg);

/* Succeeds if `refusal` is NULL, and else is refused with a text that has it. */
void expect(struct fixture *f, const char *table, work_body *body, void *arg, const char *refusal);

/* `len` letters, in the arena. */
struct str letters(struct fixture *f, size_t len);

#endif
