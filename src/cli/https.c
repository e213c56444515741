#include "cli/https.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/log.h"
#include "http/server.h"

enum {
	HTTPS_TIME_BYTES = 32
};

static struct {
	sem_t asked; /* posted by each SIGHUP and when watching ends */
	atomic_bool ended;
	pthread_t thread;
} https_watch_state;

enum status
https_find(struct https *h, const struct settings *settings, const char *given,
	   const char *plain_host, struct err *err)
{
	const struct tls_settings *s = settings_of(settings, &tls_setting_group);

	h->wanted = given || s->enabled;
	h->port = (uint16_t)s->port;
	(void)snprintf(h->host, sizeof(h->host), "%s", plain_host);
	if (given)
		TRY(address_parse(given, h->host, &h->port, err));
	return h->wanted ? net_tls_new(s, &h->tls, err) : STATUS_OK;
}

enum status
https_listen(struct https *h, struct server *server, struct err *err)
{
	char address[ADDRESS_TEXT_BYTES];

	if (!h->wanted)
		return STATUS_OK;
	address_write(h->host, h->port, address);
	return server_listen_tls(server, address, h->tls, &h->port, err);
}

/* ---- SIGHUP ---- */

static void
https_reload(struct net_tls *tls)
{
	char expiry[HTTPS_TIME_BYTES];
	struct err err = { 0 };

	if (net_tls_reload(tls, &err) != STATUS_OK) {
		log_event(LOG_LEVEL_ERROR, "certificates_not_reloaded",
			  "reason=\"%s\" hint=\"those of before are still in use\"", err.text);
		return;
	}
	net_tls_expiry(tls, expiry);
	log_event(LOG_LEVEL_INFO, "certificates_reloaded", "expires=%s", expiry);
}

static void
https_on_signal(int number)
{
	(void)number;
	sem_post(&https_watch_state.asked);
}

static void *
https_run(void *arg)
{
	struct net_tls *tls = arg;

	for (;;) {
		while (sem_wait(&https_watch_state.asked) != 0)
			;
		if (atomic_load(&https_watch_state.ended))
			return NULL;
		https_reload(tls);
	}
}

enum status
https_watch(struct https *h, struct err *err)
{
	struct sigaction action = { .sa_handler = https_on_signal };
	char address[ADDRESS_TEXT_BYTES];
	char expiry[HTTPS_TIME_BYTES];

	if (!h->wanted)
		return STATUS_OK;
	sem_init(&https_watch_state.asked, 0, 0);
	if (pthread_create(&https_watch_state.thread, NULL, https_run, h->tls) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	h->watching = true;
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_RESTART;
	sigaction(SIGHUP, &action, NULL);
	address_write(h->host, h->port, address);
	net_tls_expiry(h->tls, expiry);
	log_event(LOG_LEVEL_INFO, "https", "address=%s certificate_expires=%s", address, expiry);
	return STATUS_OK;
}

void
https_unwatch(struct https *h)
{
	if (!h->watching)
		return;
	signal(SIGHUP, SIG_IGN);
	atomic_store(&https_watch_state.ended, true);
	sem_post(&https_watch_state.asked);
	pthread_join(https_watch_state.thread, NULL);
	h->watching = false;
}

void
https_fini(struct https *h)
{
	net_tls_free(h->tls);
	h->tls = NULL;
}
