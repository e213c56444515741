#include "cli/certificates.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/timespec.h"
#include "cli/manager.h"

enum {
	TIME_BYTES = 32,
	DAY_S = 24 * 60 * 60,
};

METRIC_COLLECTED(
	expiry, METRIC_KIND_GAUGE, "frond_tls_certificate_expiry_timestamp_seconds", METRIC_SECONDS,
	"When the first of the certificates in use expires, in seconds since 1970. Nothing "
	"where no address is listened on with TLS.");

static struct {
	sem_t asked; /* posted by each SIGHUP and when watching ends */
	atomic_bool ended;
	pthread_t thread;
} certificates_watcher;

enum status
certificates_read(struct certificates *c, const struct settings *settings, struct err *err)
{
	return net_tls_new(settings_of(settings, &tls_setting_group), &c->tls, err);
}

/* ---- When they expire ---- */

static void
certificates_collect(void *arg)
{
	int64_t expires_s = net_tls_expires_s(arg);

	if (expires_s >= 0)
		metric_report(&expiry, 0, (uint64_t)expires_s * 1000 * CLOCK_NS_PER_MS);
}

static void
certificates_write_expiry(int64_t expires_s, char ret[TIME_BYTES])
{
	time_t at = (time_t)expires_s;
	struct tm tm;

	ret[0] = '\0';
	if (expires_s >= 0 && gmtime_r(&at, &tm))
		(void)strftime(ret, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Logs `event` with the time at which the first one expires, and a warning if that is soon. */
static void
certificates_tell(struct net_tls *tls, const char *event)
{
	int64_t expires_s = net_tls_expires_s(tls);
	int64_t left_s = expires_s - (int64_t)(clock_wall_ms() / 1000);
	char text[TIME_BYTES];

	certificates_write_expiry(expires_s, text);
	if (event)
		log_event(LOG_LEVEL_INFO, event, "expires=%s", text);
	if (expires_s < 0 || left_s >= (int64_t)CERTIFICATES_WARN_DAYS * DAY_S)
		return;
	if (left_s <= 0)
		log_event(LOG_LEVEL_ERROR, "certificate_expired",
			  "expires=%s hint=\"clients refuse it; renew it, then send SIGHUP\"",
			  text);
	else
		log_event(LOG_LEVEL_WARN, "certificate_expires_soon",
			  "expires=%s days=%lld hint=\"renew it, then send SIGHUP\"", text,
			  (long long)(left_s / DAY_S));
}

/* ---- SIGHUP ---- */

static void
certificates_reload(struct net_tls *tls)
{
	struct err err = { 0 };

	if (!tls)
		log_event(LOG_LEVEL_INFO, "nothing_reloaded",
			  "hint=\"there are no certificates; settings of the file need a "
			  "restart\"");
	else if (net_tls_reload(tls, &err) == STATUS_OK)
		certificates_tell(tls, "certificates_reloaded");
	else
		log_event(LOG_LEVEL_ERROR, "certificates_not_reloaded",
			  "reason=\"%s\" hint=\"those of before are still in use\"", err.text);
}

static void
certificates_on_signal(int number)
{
	(void)number;
	sem_post(&certificates_watcher.asked);
}

/* Waits for a post; false if there was none until then. */
static bool
certificates_wait(uint64_t until_ns)
{
	const struct timespec until = timespec_of_ns(until_ns);
	int got;

	do
		got = sem_clockwait(&certificates_watcher.asked, CLOCK_MONOTONIC, &until);
	while (got != 0 && errno == EINTR);
	return got == 0;
}

static void *
certificates_run(void *arg)
{
	struct net_tls *tls = arg;

	thread_set_name("certificates");
	for (;;) {
		bool asked = certificates_wait(clock_after_ms(CERTIFICATES_WARN_MS));

		if (atomic_load(&certificates_watcher.ended))
			return NULL;
		if (asked) {
			manager_tell(MANAGER_RELOADING);
			certificates_reload(tls);
			manager_tell(MANAGER_READY);
		} else if (tls) {
			certificates_tell(tls, NULL);
		}
	}
}

enum status
certificates_watch(struct certificates *c, struct err *err)
{
	struct sigaction action = { .sa_handler = certificates_on_signal };

	if (!c->tls && !manager_listens())
		return STATUS_OK;
	sem_init(&certificates_watcher.asked, 0, 0);
	if (pthread_create(&certificates_watcher.thread, NULL, certificates_run, c->tls) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	c->watching = true;
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_RESTART;
	sigaction(SIGHUP, &action, NULL);
	if (!c->tls)
		return STATUS_OK;
	c->collector = (struct metric_collector){ .collect = certificates_collect, .arg = c->tls };
	metric_collector_add(&c->collector);
	certificates_tell(c->tls, "certificates");
	return STATUS_OK;
}

void
certificates_unwatch(struct certificates *c)
{
	if (!c->watching)
		return;
	signal(SIGHUP, SIG_IGN);
	if (c->tls)
		metric_collector_remove(&c->collector);
	atomic_store(&certificates_watcher.ended, true);
	sem_post(&certificates_watcher.asked);
	pthread_join(certificates_watcher.thread, NULL);
	c->watching = false;
}

void
certificates_fini(struct certificates *c)
{
	net_tls_free(c->tls);
	c->tls = NULL;
}
