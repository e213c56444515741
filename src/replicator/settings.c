#include "replicator/settings.h"

SETTING_GROUP(replicator_setting_group, replicator_settings, REPLICATOR_SETTINGS);

/* True if a list with commas names the protocol. */
static bool
protocols_have(const char *list, struct str name)
{
	struct str rest = str_from_cstr(list);
	struct str protocol;

	while (str_list_next(&rest, &protocol))
		if (str_eq(protocol, name))
			return true;
	return false;
}

void
replicator_config_set(struct replicator_config *ret, const struct replicator_settings *settings)
{
	ret->defaults = (struct repl_defaults){
		.workers = (unsigned)settings->worker_processes,
		.batch = (unsigned)settings->worker_batch_size,
		.connections = (unsigned)settings->http_connections,
		.timeout_ms = settings->connection_timeout_ms,
		.retries = (unsigned)settings->retries_per_request,
		.use_checkpoints = settings->use_checkpoints,
		.use_bulk_get = settings->use_bulk_get,
		.checkpoint_ms = settings->checkpoint_interval_ms,
	};
	ret->max_jobs = (unsigned)settings->max_jobs;
	ret->max_churn = (unsigned)settings->max_churn;
	ret->max_history = (unsigned)settings->max_history;
	ret->interval_ms = settings->interval_ms;
	ret->backoff_ms = settings->backoff_ms;
	ret->job_bytes = (size_t)settings->job_bytes;
	ret->health_ms = settings->health_s * UINT64_C(1000);
	ret->http_allowed = protocols_have(settings->endpoint_protocols, STR("http"));
	ret->https_allowed = protocols_have(settings->endpoint_protocols, STR("https"));
	ret->net = (struct net_config){
		.verify = settings->verify_certificates,
		.trusted = settings->trusted_file,
		.certificate = settings->cert_file,
		.key = settings->key_file,
		.key_password = settings->key_password,
		.minimum_rate = settings->minimum_rate,
	};
}
