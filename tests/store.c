#include "store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "kv/faulty/faulty.h"

static const char *
faults(void)
{
	const char *settings = getenv("FROND_TEST_FAULTS");

	return settings && *settings ? settings : NULL;
}

static uint64_t seed;

static void
choose_seed(void)
{
	const char *text = getenv("FROND_TEST_SEED");

	if (!text)
		text = getenv("FROND_TEST_DEFAULT_SEED");
	if (text)
		seed = strtoull(text, NULL, 0);
	else
		rand_bytes(&seed, sizeof(seed));
}

uint64_t
test_seed(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, choose_seed);
	return seed;
}

bool
test_store_fails(void)
{
	return faults() && !strstr(faults(), "rate=0,");
}

/* What the run has reached. */
static void
report(void)
{
	struct buf text = BUF_INIT(4096);

	kv_faulty_report(&text);
	(void)fprintf(stderr, "# %.*s\n", STR_ARG(buf_str(&text)));
	buf_release(&text);
}

void
test_store_url(const char *path, char *ret, size_t size)
{
	static uint64_t stores;

	if (!faults()) {
		(void)snprintf(ret, size, "embedded:%s", path);
		return;
	}
	if (stores == 0) {
		/* The first thing to know about a failure. */
		(void)fprintf(stderr, "# FROND_TEST_SEED=%llu FROND_TEST_FAULTS=%s\n",
			      (unsigned long long)test_seed(), faults());
		(void)atexit(report);
	}
	(void)snprintf(ret, size, "faulty:%s,seed=%llu:embedded:%s", faults(),
		       (unsigned long long)(test_seed() + stores++), path);
}
