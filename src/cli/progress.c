#include "cli/progress.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void
progress_format_bytes(uint64_t bytes, char *ret, size_t n)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	double value = (double)bytes / 1000;
	size_t unit = 0;

	if (bytes < 1000) {
		snprintf(ret, n, "%u bytes", (unsigned)bytes);
		return;
	}
	/* A number that would be printed as 1000 is printed as 1 of the next unit. */
	while (value >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1000;
		unit++;
	}
	snprintf(ret, n, value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void
format_time_left(const struct progress_now *now, char *ret, size_t n)
{
	uint64_t left_s;

	*ret = '\0';
	if (now->total_bytes <= now->bytes || now->bytes == 0 || now->elapsed_ms < 1000)
		return;
	left_s = (uint64_t)((double)now->elapsed_ms / 1000 *
			    (double)(now->total_bytes - now->bytes) / (double)now->bytes);
	if (left_s >= 3600)
		snprintf(ret, n, ", %llu:%02u:%02u left", (unsigned long long)(left_s / 3600),
			 (unsigned)(left_s / 60 % 60), (unsigned)(left_s % 60));
	else
		snprintf(ret, n, ", %u:%02u left", (unsigned)(left_s / 60),
			 (unsigned)(left_s % 60));
}

void
progress_format(const struct progress_now *now, bool terminal, char *ret, size_t n)
{
	char bar[PROGRESS_BAR_CELLS + 3] = "";
	char percent_text[16] = "";
	char left[48];
	char bytes[32];
	uint64_t rate = now->elapsed_ms
				? (uint64_t)((double)now->docs * 1000 / (double)now->elapsed_ms)
				: 0;

	if (now->total_bytes) {
		uint64_t done = now->bytes < now->total_bytes ? now->bytes : now->total_bytes;
		double share = (double)done / (double)now->total_bytes;
		size_t cells = (size_t)(share * PROGRESS_BAR_CELLS);

		snprintf(percent_text, sizeof(percent_text), terminal ? " %3u %%  " : "%u %%, ",
			 (unsigned)(share * 100));
		if (terminal) {
			memset(bar, '-', sizeof(bar) - 1);
			memset(bar + 1, '#', cells);
			bar[0] = '[';
			bar[PROGRESS_BAR_CELLS + 1] = ']';
		}
	}
	progress_format_bytes(now->bytes, bytes, sizeof(bytes));
	format_time_left(now, left, sizeof(left));
	snprintf(ret, n, "%s%s%llu documents, %s, %llu documents/s%s", bar, percent_text,
		 (unsigned long long)now->docs, bytes, (unsigned long long)rate, left);
}

void
progress_init(struct progress *p, FILE *out, bool quiet, uint64_t total_bytes)
{
	*p = (struct progress){
		.out = out,
		.terminal = isatty(fileno(out)) == 1,
		.quiet = quiet,
		.total_bytes = total_bytes,
		.started_ns = clock_mono_ns(),
	};
	p->told_ns = p->started_ns;
}

uint64_t
progress_elapsed_ms(const struct progress *p)
{
	return (clock_mono_ns() - p->started_ns) / CLOCK_NS_PER_MS;
}

void
progress_update(struct progress *p, uint64_t docs, uint64_t bytes)
{
	uint64_t pause_ms = p->terminal ? PROGRESS_TERMINAL_MS : PROGRESS_PLAIN_MS;
	uint64_t now_ns = clock_mono_ns();
	struct progress_now now = { docs, bytes, p->total_bytes, progress_elapsed_ms(p) };
	char text[PROGRESS_TEXT_BYTES];

	if (p->quiet || now_ns - p->told_ns < pause_ms * CLOCK_NS_PER_MS)
		return;
	p->told_ns = now_ns;
	progress_format(&now, p->terminal, text, sizeof(text));
	/* On a terminal this draws over the last drawing, and clears the rest of the line. */
	fprintf(p->out, p->terminal ? "\r%s\033[K" : "%s\n", text);
	fflush(p->out);
	p->drawn = p->terminal;
}

void
progress_hide(struct progress *p)
{
	if (!p->drawn)
		return;
	fputs("\r\033[K", p->out);
	fflush(p->out);
	p->drawn = false;
}
