#include "door/couch/wire/uuid.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/rand.h"

enum {
	UUID_BYTES = 16,
	UUID_BASE_36_DIGITS = 25, /* of the greatest number of 128 bits */

	/* A sequence of ids: what they have in common, then three bytes that grow. */
	SEQUENTIAL_PREFIX_BYTES = 13,
	SEQUENTIAL_STEP_MOST = 0xffd,
	SEQUENTIAL_END = 0xfff000, /* then another sequence begins */
};

/*
 * The time in microseconds. Each call returns a later time than all calls before it, on any thread.
 */
static uint64_t
next_moment_us(void)
{
	static _Atomic uint64_t last_us;
	uint64_t now_us = clock_wall_ms() * 1000;
	uint64_t seen = atomic_load(&last_us);
	uint64_t next;

	do {
		next = now_us > seen ? now_us : seen + 1;
	} while (!atomic_compare_exchange_weak(&last_us, &seen, next));
	return next;
}

struct str
couch_uuid_new(struct arena *arena)
{
	uint64_t noise;
	uint8_t more_noise;

	/*
	 * The time comes first, so that documents created one after another are neighbours in the
	 * keyspace.
	 */
	rand_bytes(&noise, sizeof(noise));
	rand_bytes(&more_noise, sizeof(more_noise));
	return arena_printf(arena, "%014llx%016llx%02x", (unsigned long long)next_moment_us(),
			    (unsigned long long)noise, more_noise);
}

/* ---- 128 bits ---- */

static void
uuid_write_hex(const uint8_t *bytes, size_t count, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * count] = '\0';
}

/* The number as 25 digits to the base of 36. */
static struct str
uuid_show_base_36(uint8_t bytes[UUID_BYTES], struct arena *arena)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char text[UUID_BASE_36_DIGITS];

	for (size_t at = UUID_BASE_36_DIGITS; at > 0; at--) {
		unsigned rest = 0;

		for (size_t i = 0; i < UUID_BYTES; i++) {
			rest = rest << 8 | bytes[i];
			bytes[i] = (uint8_t)(rest / 36);
			rest %= 36;
		}
		text[at - 1] = digits[rest];
	}
	return arena_dup(arena, str_of(text, sizeof(text)));
}

static struct str
uuid_show(uint8_t bytes[UUID_BYTES], const char *format, struct arena *arena)
{
	char hex[2 * UUID_BYTES + 1];

	if (strcmp(format, "base_36") == 0)
		return uuid_show_base_36(bytes, arena);
	uuid_write_hex(bytes, UUID_BYTES, hex);
	if (strcmp(format, "rfc9562") == 0)
		return arena_printf(arena, "%.8s-%.4s-%.4s-%.4s-%s", hex, hex + 8, hex + 12,
				    hex + 16, hex + 20);
	return arena_dup(arena, str_from_cstr(hex));
}

/* RFC 9562: version 4 is random; version 7 begins with the time in milliseconds. */
static struct str
uuid_new(unsigned version, const char *format, struct arena *arena)
{
	uint8_t bytes[UUID_BYTES];

	rand_bytes(bytes, sizeof(bytes));
	if (version == 7) {
		uint64_t now_ms = clock_wall_ms();

		for (size_t i = 0; i < 6; i++)
			bytes[i] = (uint8_t)(now_ms >> (8 * (5 - i)));
	}
	bytes[6] = (uint8_t)(version << 4 | (bytes[6] & 0x0f));
	bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
	return uuid_show(bytes, format, arena);
}

/* ---- Sequences ---- */

static struct {
	/* Owns the rest. It is held while random bytes are drawn. */
	pthread_mutex_t lock;
	char prefix[2 * SEQUENTIAL_PREFIX_BYTES + 1]; /* empty: none has begun */
	uint32_t next;
} sequence = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t
sequence_step(void)
{
	uint16_t noise;

	rand_bytes(&noise, sizeof(noise));
	return 1 + noise % SEQUENTIAL_STEP_MOST;
}

/* The next id of the process's sequence. Its last six digits grow by a random step. */
static struct str
sequence_next(struct arena *arena)
{
	uint8_t noise[SEQUENTIAL_PREFIX_BYTES];
	struct str id;

	pthread_mutex_lock(&sequence.lock);
	if (!sequence.prefix[0] || sequence.next >= SEQUENTIAL_END) {
		rand_bytes(noise, sizeof(noise));
		uuid_write_hex(noise, sizeof(noise), sequence.prefix);
		sequence.next = sequence_step();
	}
	id = arena_printf(arena, "%s%06x", sequence.prefix, sequence.next);
	sequence.next += sequence_step();
	pthread_mutex_unlock(&sequence.lock);
	return id;
}

/* ---- By the settings ---- */

struct str
couch_docid_new(const struct couch_settings *settings, struct arena *arena)
{
	const char *algorithm = settings->uuid_algorithm;
	const char *suffix = settings->uuid_suffix ? settings->uuid_suffix : "";
	uint8_t noise[UUID_BYTES];

	if (strcmp(algorithm, "utc_random") == 0)
		return couch_uuid_new(arena);
	if (strcmp(algorithm, "sequential") == 0)
		return sequence_next(arena);
	if (strcmp(algorithm, "uuid_v4") == 0)
		return uuid_new(4, settings->uuid_format, arena);
	if (strcmp(algorithm, "uuid_v7") == 0)
		return uuid_new(7, settings->uuid_format, arena);
	if (strcmp(algorithm, "utc_id") == 0)
		return arena_printf(arena, "%014llx%s", (unsigned long long)next_moment_us(),
				    suffix);
	rand_bytes(noise, sizeof(noise)); /* "random" */
	return uuid_show(noise, "base_16", arena);
}
