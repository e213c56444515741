/*
 * What the server declares of settings (base/setting.h): its threads, its limits and its deadlines.
 */
#ifndef FROND_HTTP_SETTINGS_H
#define FROND_HTTP_SETTINGS_H

#include "base/setting.h"
#include "net/host.h"

enum {
	SERVER_HEADER_BYTES = 64 * 1024,
	SERVER_OUTPUT_BYTES = 256 * 1024,
	SERVER_HEADER_TIMEOUT_MS = 30 * 1000,
};

/* clang-format off */
#define SERVER_SETTINGS(S, NUMBER, FLAG, TEXT)                                                     \
	NUMBER(S, max_connections, "chttpd", "max_connections", "", 1, 1000000,                    \
	       NET_MAX_CONNECTIONS, SETTING_AT_START,                                           \
	       "Connections at a time; more are answered 503. At most five eighths of the files "  \
	       "that the process may open.")                                                       \
	NUMBER(S, max_connections_per_address, "frond", "max_connections_per_address", "", 1,      \
	       1000000, 0, SETTING_AT_START,                                                       \
	       "Connections of one address, of IPv6 of the first 64 bits; more are answered 429. " \
	       "By default three quarters of max_connections, and no limit for the loopback.")     \
	NUMBER(S, loops, "frond", "loops", "", 1, 1024, 0, SETTING_AT_START,                       \
	       "Threads that serve connections. By default one for each processor.")               \
	NUMBER(S, pool_threads, "frond", "pool_threads", "", 1, 1024, NET_POOL_THREADS,         \
	       SETTING_AT_START,                                                                   \
	       "Threads for work that blocks, and as many for work that computes for long.")       \
	NUMBER(S, header_bytes, "frond", "header_bytes", "bytes", 1024, 16 << 20,                  \
	       SERVER_HEADER_BYTES, SETTING_AT_START,                                              \
	       "The largest request line and headers together; larger ones are answered 431.")     \
	NUMBER(S, request_bytes, "frond", "request_bytes", "bytes", 1 << 20, UINT64_C(64) << 30,   \
	       NET_REQUEST_BYTES, SETTING_AT_START, "The most memory that one request takes.")  \
	NUMBER(S, request_steps, "frond", "request_steps", "", 1000000, UINT64_C(1) << 60,         \
	       NET_REQUEST_STEPS, SETTING_AT_START,                                                \
	       "The most computing for one request, or for one row or document of its answer, in " \
	       "steps of about 50 ns; more is answered 413.")                                      \
	NUMBER(S, memory_bytes, "frond", "memory_bytes", "bytes", 8 << 20, UINT64_C(1) << 40,      \
	       NET_MEMORY_BYTES, SETTING_AT_START,                                              \
	       "The most memory that all requests take together, see Memory in OPERATING.md.")     \
	NUMBER(S, memory_timeout_ms, "frond", "memory_timeout_ms", "ms", 1, 86400000,              \
	       NET_MEMORY_WAIT_MS, SETTING_AT_START,                                               \
	       "How long a request of any protocol waits for memory that others have; then it is " \
	       "refused, by HTTP with 503.")                                                       \
	NUMBER(S, output_bytes, "frond", "output_bytes", "bytes", 4096, 1 << 30,                   \
	       SERVER_OUTPUT_BYTES, SETTING_AT_START,                                              \
	       "Output of a connection that its client has not read yet, before its request "      \
	       "waits.")                                                                           \
	NUMBER(S, header_timeout_ms, "frond", "header_timeout_ms", "ms", 1, 86400000,              \
	       SERVER_HEADER_TIMEOUT_MS, SETTING_AT_START,                                         \
	       "Time from the first byte of a request to the end of its headers.")                 \
	NUMBER(S, idle_timeout_ms, "frond", "idle_timeout_ms", "ms", 1, 86400000,                  \
	       NET_IDLE_TIMEOUT_MS, SETTING_AT_START,                                              \
	       "How long a connection is kept without a request; of Redis's clients that have "    \
	       "sent one, CONFIG SET timeout tells.")                                              \
	NUMBER(S, body_timeout_ms, "frond", "body_timeout_ms", "ms", 1, 86400000,                  \
	       NET_STALL_TIMEOUT_MS, SETTING_AT_START,                                             \
	       "Time between two stretches of a body, or of another door's command, or of output " \
	       "that a client reads.")                                                             \
	NUMBER(S, min_rate_bytes, "frond", "min_rate_bytes", "bytes", 1, 1 << 30,                  \
	       NET_MIN_RATE_BYTES, SETTING_AT_START,                                               \
	       "The least that a client sends of a body, or reads of an answer, in a second, on "  \
	       "average over rate_window_ms in which it is waited for; a slower one is answered "  \
	       "408, or cut off.")                                                                 \
	NUMBER(S, rate_window_ms, "frond", "rate_window_ms", "ms", 100, 86400000,                  \
	       NET_RATE_WINDOW_MS, SETTING_AT_START,                                               \
	       "The time that min_rate_bytes is averaged over.")                                   \
	NUMBER(S, drain_timeout_ms, "frond", "drain_timeout_ms", "ms", 1, 86400000,                \
	       NET_DRAIN_TIMEOUT_MS, SETTING_AT_START,                                          \
	       "How long a stop takes at most; requests under way have a little less than that.")
/* clang-format on */

SETTING_STRUCT(server_settings, SERVER_SETTINGS);

extern const struct setting_group server_setting_group;

#endif
