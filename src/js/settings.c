#include "js/settings.h"

#include "js/js.h"

SETTING_GROUP(js_setting_group, js_settings, JS_SETTINGS);

void
js_config_set(struct js_config *config, const struct js_settings *settings)
{
	*config = (struct js_config){
		.worker = settings->worker,
		.workers = (unsigned)settings->workers,
		.timeout_ms = settings->timeout_ms,
		.idle_ms = settings->idle_s * 1000,
		.memory_bytes = settings->memory_bytes,
		.output_bytes = settings->output_bytes,
		.slow_ms = settings->slow_ms,
	};
}
