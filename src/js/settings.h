/* What js/ declares of settings (base/setting.h). */
#ifndef FROND_JS_SETTINGS_H
#define FROND_JS_SETTINGS_H

#include "base/setting.h"

/* clang-format off */
#define JS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                         \
	NUMBER(S, timeout_ms, "couchdb", "os_process_timeout", "ms", 1, 3600000, 5000,             \
	       SETTING_AT_START,                                                                   \
	       "How long a design document's function may take for one document.")                 \
	NUMBER(S, workers, "query_server_config", "os_process_limit", "", 2, 256, 16,              \
	       SETTING_AT_START,                                                                   \
	       "Worker processes at a time: half of them for building views, half for everything " \
	       "else. They are started as they are needed.")                                       \
	NUMBER(S, idle_s, "query_server_config", "os_process_idle_limit", "s", 1, 86400, 300,      \
	       SETTING_AT_START,                                                                   \
	       "A worker process that has been idle for so long is ended.")                        \
	TEXT(S, worker, "js", "worker", 1, NULL, NULL, SETTING_AT_START,                           \
	     "The program that runs functions of design documents. By default frond-js in the "    \
	     "folder libexec beside that of frond itself, or in the latter.")                      \
	NUMBER(S, memory_bytes, "js", "max_memory", "bytes", 67108864, 68719476736, 268435456,     \
	       SETTING_AT_START,                                                                   \
	       "Memory that a worker process may have resident. One that has more is killed.")     \
	NUMBER(S, output_bytes, "js", "max_output", "bytes", 1024, 67108864, 16777216,             \
	       SETTING_AT_START,                                                                   \
	       "What the functions of a design document may emit or answer for one document.")     \
	NUMBER(S, slow_ms, "js", "slow_call_ms", "ms", 0, 3600000, 1000, SETTING_AT_START,         \
	       "Calls of functions that take longer are logged. 0: none is.")
/* clang-format on */

SETTING_STRUCT(js_settings, JS_SETTINGS);

extern const struct setting_group js_setting_group;

#endif
