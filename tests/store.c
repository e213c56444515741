#include "store.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/rand.h"
#include "kv/faulty/faulty.h"
#include "kv/kv.h"

#define CLUSTER_POLL_US 20000
#define SEEDS_A_TURN    1000
#define SLOW_SHARE      3

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED false
#endif

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
	const char *variant = getenv("FROND_TEST_DEFAULT_SEED");
	const char *turn = getenv("FROND_TEST_TURN");

	if (text)
		seed = strtoull(text, NULL, 0);
	else if (variant)
		seed = strtoull(variant, NULL, 0) +
		       (turn ? SEEDS_A_TURN * strtoull(turn, NULL, 0) : 0);
	else
		rand_bytes(&seed, sizeof(seed));
	/* At once: a test that ends the process tells nothing afterwards. */
	(void)fprintf(stderr, "# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
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

/* ---- Clusters ---- */

bool
test_store_is_cluster(void)
{
	const char *on = getenv("FROND_TEST_ON");

	return on && strcmp(on, "fdb") == 0;
}

int
test_rounds(int quick)
{
	return IS_SANITIZED || faults() || test_store_is_cluster() ? quick / SLOW_SHARE : quick;
}

size_t
test_store_cases(const struct CMUnitTest *tests, size_t count, size_t embedded)
{
	if (!test_store_is_cluster())
		return count;
	for (size_t i = count - embedded; i < count; i++)
		(void)printf("# left out on a cluster: %s\n", tests[i].name);
	return count - embedded;
}

static const char *
cluster_files(void)
{
	const char *paths = getenv("FROND_TEST_FDB");

	return paths ? paths : "";
}

static char cluster[240];

/* Locks the file until the process ends. The engine complains of one that cannot be read. */
static bool
cluster_take_if_free(const char *path, size_t len)
{
	char file[sizeof(cluster)];
	int fd;

	(void)snprintf(cluster, sizeof(cluster), "%.*s", (int)len, path);
	(void)snprintf(file, sizeof(file), "%.*s", (int)strcspn(cluster, "?"), cluster);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	(void)close(fd);
	return false;
}

/* Waits until no other program has one of the clusters. */
static void
cluster_take(void)
{
	for (;;) {
		const char *path = cluster_files();

		while (*path) {
			size_t len = strcspn(path, ":");

			if (len && cluster_take_if_free(path, len))
				return;
			path += len + (path[len] == ':');
		}
		(void)usleep(CLUSTER_POLL_US);
	}
}

const char *
test_store_cluster(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, cluster_take);
	return cluster;
}

/* Before anything of the program has run, so that nothing of it has been tried. */
static void __attribute__((constructor)) skip_without_cluster(void)
{
	if (!test_store_is_cluster() || *cluster_files())
		return;
	(void)printf("1..1\nok 1 - on_a_cluster # SKIP FROND_TEST_FDB names no cluster file\n");
	(void)fflush(stdout);
	_exit(0);
}

static enum status
empty_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(kv_clear_range(tx, STR(""), STR("\xff")));
	return kv_touch_metadata_version(tx);
}

static void
empty_store(const char *url)
{
	struct kv_store *store = NULL;
	struct err err = { 0 };

	enum status status = kv_open(url, NULL, &store, &err);

	if (status == STATUS_OK)
		do
			status = kv_run(store, empty_body, NULL, NULL, &err);
		while (status ==
		       STATUS_TX_UNKNOWN); /* a cluster that is busy; once more does no harm */
	if (status != STATUS_OK)
		fail_msg("%s: %s", url, err.text);
	kv_close(store);
}

/* ---- URLs ---- */

static void
plain_url(const char *path, char *ret, size_t size)
{
	if (!test_store_is_cluster()) {
		(void)snprintf(ret, size, "embedded:%s", path);
		return;
	}
	(void)snprintf(ret, size, "fdb:%s", test_store_cluster());
	empty_store(ret);
}

void
test_store_url(const char *path, char *ret, size_t size)
{
	static uint64_t stores;
	char plain[256];

	plain_url(path, plain, sizeof(plain));
	if (!faults()) {
		(void)snprintf(ret, size, "%s", plain);
		return;
	}
	if (stores == 0) {
		kv_faulty_register();
		/* The first thing to know about a failure. */
		(void)fprintf(stderr, "# FROND_TEST_SEED=%llu FROND_TEST_FAULTS=%s\n",
			      (unsigned long long)test_seed(), faults());
		(void)atexit(report);
	}
	(void)snprintf(ret, size, "faulty:%s,seed=%llu:%s", faults(),
		       (unsigned long long)(test_seed() + stores++), plain);
}

bool
test_scheme_is_packed(void)
{
	const char *scheme = getenv("FROND_TEST_SCHEME");

	return !scheme || strcmp(scheme, "exploded") != 0;
}

/* ---- What assertions have said ---- */

static char said[8192];
static size_t said_len;

/*
 * cmocka calls this for each message of an assertion. The one of the program takes precedence over
 * the library's, to which it passes the message on.
 */
__attribute__((visibility("default"), format(printf, 1, 2))) void cm_print_error(const char *fmt,
										 ...);

void
cm_print_error(const char *fmt, ...)
{
	void (*print)(const char *fmt, ...) = NULL;
	void *found = dlsym(RTLD_NEXT, "cm_print_error");
	char text[2048];
	va_list args;
	int n;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n = snprintf(said + said_len, sizeof(said) - said_len, "%s", text);
	said_len += (size_t)n < sizeof(said) - said_len ? (size_t)n : 0;
	memcpy(&print, &found, sizeof(print));
	if (print)
		print("%s", text);
}

static void
print_what_was_said(int signal)
{
	ssize_t n = write(STDERR_FILENO, said, said_len);

	(void)signal;
	(void)n;
}

void
test_show_failures(void)
{
	/* abort() ends the program when the handler has returned. */
	(void)signal(SIGABRT, print_what_was_said);
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
test_make_dir(const char *name, char *ret, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	int len = snprintf(ret, size, "%s/frond-%s-XXXXXX", tmp ? tmp : "/tmp", name);

	assert_true(len > 0 && (size_t)len < size);
	assert_non_null(mkdtemp(ret));
}

void
test_remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
