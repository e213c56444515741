/* What the tests of the replicator share. */
#ifndef FROND_TESTS_REPLICATOR_COMMON_H
#define FROND_TESTS_REPLICATOR_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

#define assert_str(s, literal)                                                                     \
	do {                                                                                       \
		struct str str_ = (s);                                                             \
		if (!str_eq(str_, STR(literal)))                                                   \
			fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(str_), literal);                \
	} while (0)

#endif
