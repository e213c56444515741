#include "load_data.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rand.h"

enum {
	COUNTER_DIGITS = 10,
	SECTION_ENTRIES = 20,
	SECTION_BYTES = 20 * 240, /* about; decides how many sections make up a size */
};

/* Coprime to 10^10, so that multiplying by it is a permutation of the ids. */
#define ID_SCATTER UINT64_C(7368787)
#define ID_COUNT   UINT64_C(10000000000)

static const char *const words[] = {
	"account", "address", "against", "amount",   "answer",   "archive", "basket",  "because",
	"before",  "between", "bridge",  "building", "button",   "carrier", "castle",  "centre",
	"change",  "charge",  "chosen",  "colour",   "column",   "common",  "control", "corner",
	"counter", "country", "credit",  "current",  "custom",   "damage",  "decide",  "delay",
	"deliver", "depart",  "detail",  "differ",   "direct",   "display", "divide",  "double",
	"during",  "early",   "effect",  "either",   "empty",    "engine",  "enough",  "entry",
	"equal",   "every",   "example", "expect",   "export",   "extra",   "factor",  "family",
	"figure",  "filter",  "finish",  "follow",   "forest",   "forward", "freight", "garden",
	"gather",  "general", "ground",  "handle",   "harbour",  "height",  "history", "horizon",
	"however", "import",  "include", "income",   "indoor",   "initial", "inside",  "invoice",
	"island",  "journey", "kitchen", "ladder",   "language", "large",   "letter",  "level",
	"library", "limit",   "listen",  "little",   "machine",  "manner",  "market",  "measure",
	"member",  "message", "middle",  "minute",   "model",    "morning", "motion",  "mountain",
	"narrow",  "nature",  "network", "never",    "normal",   "notice",  "number",  "object",
	"office",  "often",   "open",    "order",    "other",    "outside", "packet",  "paper",
	"parcel",  "partner", "pattern", "payment",  "people",   "picture", "planet",  "pocket",
};

struct kind {
	char text[DATA_DOC_BYTES]; /* without the brace that opens it */
	size_t counter_at;
};

static struct kind *kinds;
static bool scattered;

static const char *
word(struct rand_seq *r)
{
	return words[rand_seq_below(r, sizeof(words) / sizeof(words[0]))];
}

static unsigned
number(struct rand_seq *r, unsigned below)
{
	return (unsigned)rand_seq_below(r, below);
}

/* Words up to the length at which `tail` makes the document complete. */
static void
append_note(struct buf *b, struct rand_seq *r, struct str tail)
{
	size_t end = DATA_DOC_BYTES - tail.len;

	buf_append_cstr(b, "\"note\":\"");
	while (b->len < end) {
		const char *w = word(r);
		size_t n = strlen(w);

		buf_append(b, w, n < end - b->len ? n : end - b->len);
		if (b->len < end)
			buf_append_byte(b, b->len + 1 < end ? ' ' : '.');
	}
	buf_append_str(b, tail);
}

static bool
make_kind(struct kind *k, uint64_t seed)
{
	struct rand_seq r = { .state = seed };
	struct buf b AUTO(buf_release) = BUF_INIT((size_t)2 * DATA_DOC_BYTES);

	buf_printf(&b, "{\"type\":\"%s\",\"number\":", word(&r));
	k->counter_at = b.len - 1;
	buf_printf(&b, "1%09u,", 0U);
	buf_printf(&b, "\"name\":\"%s %s\",\"email\":\"%s.%s@%s.example\",", word(&r), word(&r),
		   word(&r), word(&r), word(&r));
	buf_printf(&b, "\"created\":\"2024-%02u-%02uT%02u:%02u:%02u.%03uZ\",", number(&r, 12) + 1,
		   number(&r, 28) + 1, number(&r, 24), number(&r, 60), number(&r, 60),
		   number(&r, 1000));
	buf_printf(&b, "\"price\":%u.%02u,\"paid\":%s,", number(&r, 1000) + 1, number(&r, 100),
		   number(&r, 2) ? "true" : "false");
	buf_printf(&b,
		   "\"address\":{\"street\":\"%u %s street\",\"city\":\"%s\",\"code\":\"%05u\"},",
		   number(&r, 200) + 1, word(&r), word(&r), number(&r, 100000));
	buf_printf(&b, "\"tags\":[\"%s\",\"%s\",\"%s\"],", word(&r), word(&r), word(&r));
	append_note(&b, &r, STR("\"}"));
	if (buf_status(&b) != STATUS_OK || b.len != DATA_DOC_BYTES)
		return false;
	memcpy(k->text, b.ptr + 1, DATA_DOC_BYTES - 1);
	return true;
}

bool
data_init(void)
{
	kinds = mem_alloc(DATA_KINDS * sizeof(*kinds));
	for (size_t i = 0; kinds && i < DATA_KINDS; i++)
		if (!make_kind(&kinds[i], i))
			return false;
	return kinds != NULL;
}

void
data_scatter_ids(void)
{
	scattered = true;
}

void
data_id(uint64_t i, char ret[DATA_ID_BYTES + 1])
{
	uint64_t n = scattered ? i * ID_SCATTER % ID_COUNT : i % ID_COUNT;

	snprintf(ret, DATA_ID_BYTES + 1, "bench-%010" PRIu64, n);
}

void
data_append_doc(struct buf *b, uint64_t i, bool with_id, struct str rev)
{
	const struct kind *k = &kinds[i % DATA_KINDS];
	char id[DATA_ID_BYTES + 1];
	char digits[COUNTER_DIGITS + 1];
	size_t at;

	buf_append_byte(b, '{');
	if (with_id) {
		data_id(i, id);
		buf_append_cstr(b, "\"_id\":\"");
		buf_append(b, id, DATA_ID_BYTES);
		buf_append_cstr(b, "\",");
	}
	if (rev.len) {
		buf_append_cstr(b, "\"_rev\":\"");
		buf_append_str(b, rev);
		buf_append_cstr(b, "\",");
	}
	at = b->len + k->counter_at;
	buf_append(b, k->text, DATA_DOC_BYTES - 1);
	snprintf(digits, sizeof(digits), "1%09" PRIu64, i % (ID_COUNT / 10));
	if (buf_status(b) == STATUS_OK)
		memcpy(b->ptr + at, digits, COUNTER_DIGITS);
}

/* ---- The large one ---- */

static void
append_entry(struct buf *b, struct rand_seq *r, unsigned entry)
{
	static const char *const makers[] = { "alpha", "beta", "gamma", "delta" };

	buf_printf(b, "%s\"entry-%02u\":{\"support\":{", entry ? "," : "", entry);
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		buf_printf(b, "%s\"%s\":{\"version_added\":\"%u\",\"partial\":%s}", i ? "," : "",
			   makers[i], number(r, 120), number(r, 5) ? "false" : "true");
	buf_printf(b, "},\"status\":{\"deprecated\":%s,\"experimental\":%s,\"score\":%u}}",
		   number(r, 9) ? "false" : "true", number(r, 4) ? "false" : "true",
		   number(r, 100));
}

void
data_append_big(struct buf *b, size_t bytes)
{
	struct rand_seq r = { .state = 1 };
	size_t begin = b->len;

	for (unsigned section = 0; b->len - begin < bytes; section++) {
		buf_printf(b, "%s\"section-%04u\":{", section ? "," : "{", section);
		for (unsigned entry = 0; entry < SECTION_ENTRIES; entry++)
			append_entry(b, &r, entry);
		buf_append_byte(b, '}');
		if (buf_status(b) != STATUS_OK)
			return;
	}
	buf_append_byte(b, '}');
}

void
data_big_path(char *ret, size_t room, size_t bytes)
{
	snprintf(ret, room, "/section-%04zu/entry-10/status", bytes / SECTION_BYTES / 2);
}
