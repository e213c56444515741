/* What kv/ declares of settings (base/setting.h): which store, and its cache. */
#ifndef FROND_KV_SETTINGS_H
#define FROND_KV_SETTINGS_H

#include "base/setting.h"
#include "kv/fate.h"
#include "kv/kv.h"

#define KV_STORE_URL "embedded:./data"

/* clang-format off */
#define KV_SETTINGS(S, NUMBER, FLAG, TEXT)                                                         \
	TEXT(S, url, "frond", "store", 1, NULL, KV_STORE_URL, SETTING_LISTED,                      \
	     "The store: embedded:DIRECTORY, or fdb:CLUSTER_FILE[?prefix=NAME].")                 \
	NUMBER(S, cache_bytes, "frond", "cache_bytes", "bytes", 1 << 20, UINT64_C(1) << 50, 0,     \
	       SETTING_AT_START,                                                                   \
	       "The embedded engine's cache of blocks. By default a 32nd of the memory that "      \
	       "there is, and at least 40 MiB.")                                                   \
	NUMBER(S, recent_bytes, "frond", "recent_bytes", "bytes", 0, UINT64_C(1) << 36,            \
	       KV_RECENT_BY_MEMORY, SETTING_AT_START,                                              \
	       "The embedded engine's memory for single pairs that were read or written lately, "  \
	       "in front of the cache of blocks. By default a 128th of the memory that there is, " \
	       "and at least 16 MiB. 0: none.")                                                    \
	NUMBER(S, write_buffer_bytes, "frond", "write_buffer_bytes", "bytes", 16 << 20,            \
	       UINT64_C(1) << 30, 0, SETTING_AT_START,                                             \
	       "How much of what was written the embedded engine gathers in memory, with its log " \
	       "on the disk, before it makes a table of it. More of it saves merging, and makes "  \
	       "a start longer. By default a 128th of the memory that there is, at least 16 and "  \
	       "at most 64 MiB.")                                                                  \
	NUMBER(S, commit_wait_ms, "frond", "commit_wait_ms", "ms", 100, 3600 * 1000,               \
	       KV_COMMIT_WAIT_MS, SETTING_AT_START,                                                \
	       "How long a client waits for a commit that a cluster does not answer. It is then "  \
	       "told that the outcome is not known, and the commit goes on by itself.")            \
	NUMBER(S, log_bytes, "frond", "keep_log_bytes", "bytes", 0, UINT64_C(1) << 50, 0,          \
	       SETTING_AT_START,                                                                   \
	       "How much of the embedded engine's log is kept for standbys, which need a new "     \
	       "copy when they are further behind. 0: this server has no standbys.")               \
	TEXT(S, standby_url, "frond", "standby_url", 1, NULL, NULL, SETTING_SECRET,                \
	     "Where this store's standby would serve if it were promoted, as "                     \
	     "https://NAME:PASSWORD@HOST:PORT. It is asked at the start and every five seconds; "  \
	     "once it has taken this store's place, this server ends, and the store is served no " \
	     "more.")                                                                              \
	TEXT(S, follow_url, "frond", "follow_url", 1, NULL, NULL, SETTING_SECRET,                  \
	     "The server that this one is a standby of, as https://NAME:PASSWORD@HOST:PORT: it is " \
	     "followed, and reads are served as far as they have come. Without this setting, the " \
	     "server has a store of its own.")                                                     \
	TEXT(S, follow_name, "frond", "follow_name", 1, NULL, NULL, SETTING_LISTED,                \
	     "What that server calls this standby. By default the name of this machine.")          \
	NUMBER(S, probe_ms, "frond", "store_probe_ms", "ms", 10, 3600 * 1000, 2000,                \
	       SETTING_AT_START,                                                                   \
	       "How often the disk of a directory that is full or read-only is looked at, until "  \
	       "the directory can be written to again.")
/* clang-format on */

SETTING_STRUCT(kv_settings, KV_SETTINGS);

extern const struct setting_group kv_setting_group;

#endif
