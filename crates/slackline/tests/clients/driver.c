/* The driver for C: reads steps of the table on standard input, does them with
 * libslackline, and prints one line for each. The first argument is the socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <slackline.h>
#include <stdlib.h>
#include <string.h>

static const char *own_socket;
static sl_file *file;

static uint8_t byte(uint32_t seed, uint64_t i)
{
	return ((uint32_t)i * 0x9e3779b1u + seed * 0x85ebca6bu) >> 24;
}

static const char *same(const uint8_t *bytes, uint32_t seed, uint64_t at, size_t len)
{
	int same = 1, zeros = 1;
	for (size_t i = 0; i < len; i++) {
		same &= bytes[i] == byte(seed, at + i);
		zeros &= bytes[i] == 0;
	}
	return same ? "same" : zeros ? "zeros" : "other";
}

static void ok(int result)
{
	if (result < 0)
		printf("error %s\n", strerrorname_np(errno));
	else
		printf("ok\n");
}

/* The number behind NAME= in a line; 0 where it is not there. */
static uint64_t number(const char *line, const char *name)
{
	const char *found = strstr(line, name);
	return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static struct sl_contract contract(const char *line)
{
	return (struct sl_contract){
		.rate = number(line, " rate="),
		.block = number(line, " block="),
		.burst = number(line, " burst="),
	};
}

static const char *const priorities[] = { "unsaid", "interactive", "normal", "background" };

/* The number of a name of a priority. */
static int priority(const char *name)
{
	int number = 3;
	while (number > 0 && strcmp(priorities[number], name))
		number--;
	return number;
}

static void priority_it(const char *line)
{
	char name[16];
	if (sscanf(line, "priority %15s", name) == 1 && sl_priority_set(file, priority(name)) < 0)
		ok(-1);
	else
		printf("priority %s\n", priorities[sl_priority_get(file)]);
}

static void within_it(const char *line)
{
	unsigned long long len = 0, within = 0, every = 0;
	int said = sscanf(line, "within %llu %llu %llu", &len, &within, &every);
	struct sl_in_time asked = { len, within * 1000000, every * 1000000 };
	if (said > 0 && sl_in_time_set(file, said == 3 ? &asked : NULL) < 0)
		ok(-1);
	else if (sl_in_time_get(file, &asked) == 1)
		printf("within %llu %llu %llu\n", (unsigned long long)asked.len,
		       (unsigned long long)asked.within_ns, (unsigned long long)asked.every_ns);
	else
		printf("within none\n");
}

static void open_it(const char *line)
{
	char target[256] = "", mode[8] = "", other[256] = "", first[16];
	sscanf(line, "open %255s %7s", target, mode);
	int flags = !strcmp(mode, "rw") ? O_RDWR : *mode == 'w' ? O_WRONLY : O_RDONLY;
	if (strstr(line, " truncate"))
		flags |= O_TRUNC;
	if (strstr(line, " append"))
		flags |= O_APPEND;
	struct sl_options options = { .socket = own_socket, .contract = contract(line) };
	if ((options.size = number(line, " create=")))
		flags |= O_CREAT;
	const char *socket = strstr(line, " socket=");
	if (socket && sscanf(socket, " socket=%255s", other) == 1)
		options.socket = other;
	const char *said = strstr(line, " priority=");
	if (said && sscanf(said, " priority=%15s", first) == 1)
		options.priority = priority(first);
	options.update = strstr(line, " update") != NULL;
	file = sl_open(target, flags, &options);
	ok(file ? 0 : -1);
}

static void write_it(uint32_t seed, size_t len)
{
	uint8_t *bytes = malloc(len);
	uint64_t at = sl_seek(file, 0, SEEK_CUR);
	ssize_t wrote = 0;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte(seed, at + i);
	for (size_t done = 0; done < len && wrote >= 0; done += wrote)
		wrote = sl_write(file, bytes + done, len - done);
	if (wrote < 0 || sl_flush(file) < 0)
		ok(-1);
	else
		printf("wrote %zu\n", len);
	free(bytes);
}

static void read_it(uint32_t seed, size_t len)
{
	uint8_t *bytes = malloc(len);
	uint64_t at = sl_seek(file, 0, SEEK_CUR);
	size_t done = 0;
	ssize_t got = 1;
	while (done < len && (got = sl_read(file, bytes + done, len - done)) > 0)
		done += got;
	if (got < 0)
		ok(-1);
	else
		printf("read %zu %s\n", done, same(bytes, seed, at, done));
	free(bytes);
}

static void write_at(uint32_t seed, uint64_t place, size_t len)
{
	uint8_t *bytes = malloc(len);
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte(seed, place + i);
	ssize_t wrote = sl_write_at(file, place, bytes, len);
	if (wrote < 0)
		ok(-1);
	else
		printf("wrote %zd\n", wrote);
	free(bytes);
}

static void peek_it(uint32_t seed, size_t len)
{
	const void *bytes;
	uint64_t at = sl_seek(file, 0, SEEK_CUR);
	ssize_t seen = sl_peek(file, &bytes, len);
	if (seen < 0)
		ok(-1);
	else if (seen == 0)
		printf("saw nothing\n");
	else
		printf("saw %s\n", same(bytes, seed, at, seen));
}

static void whole(uint32_t seed, size_t len)
{
	const void *bytes;
	uint64_t at = sl_seek(file, 0, SEEK_CUR);
	ssize_t seen = sl_peek_whole(file, &bytes, len);
	if (seen < 0)
		ok(-1);
	else
		printf("saw %zd %s\n", seen, same(bytes, seed, at, seen));
}

static void read_at(uint32_t seed, uint64_t at, size_t len)
{
	uint8_t *bytes = malloc(len);
	ssize_t got = sl_read_at(file, at, bytes, len);
	if (got < 0)
		ok(-1);
	else
		printf("read %zd %s\n", got, same(bytes, seed, at, got));
	free(bytes);
}

/* count ranges of len bytes, step bytes from each other, the last first. */
static void ranges(int writes, const char *line)
{
	unsigned long long seed = 0, at = 0, count = 0, step = 0, len = 0;
	sscanf(line, "%*s %llu %llu %llu %llu %llu", &seed, &at, &count, &step, &len);
	struct sl_range *all = calloc(count, sizeof *all);
	for (size_t i = 0; i < count; i++) {
		uint64_t place = at + step * (count - 1 - i);
		all[i] = (struct sl_range){ .place = place, .data = malloc(len), .len = len };
		for (size_t k = 0; writes && k < len; k++)
			((uint8_t *)all[i].data)[k] = byte(seed, place + k);
	}
	ssize_t moved = (writes ? sl_write_ranges : sl_read_ranges)(file, all, count);
	const char *as = "same";
	size_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += all[i].moved;
		if (!writes && strcmp(same(all[i].data, seed, all[i].place, all[i].moved), "same"))
			as = "other";
		free(all[i].data);
	}
	free(all);
	if (moved < 0)
		ok(-1);
	else if (sum != (size_t)moved)
		printf("moved %zd and %zu\n", moved, sum);
	else if (writes)
		printf("wrote %zd\n", moved);
	else
		printf("read %zd %s\n", moved, as);
}

static void place(const char *word, int64_t at)
{
	if (at < 0)
		ok(-1);
	else
		printf("%s %" PRId64 "\n", word, at);
}

static void seek_it(const char *line)
{
	long long offset = 0;
	char whence[8] = "";
	sscanf(line, "seek %lld %7s", &offset, whence);
	int from = !strcmp(whence, "set") ? SEEK_SET : !strcmp(whence, "cur") ? SEEK_CUR : SEEK_END;
	place("at", sl_seek(file, offset, from));
}

static void refused(void)
{
	struct sl_refusal r;
	if (!sl_refused(&r))
		printf("not refused\n");
	else
		printf("refused disk %" PRIu64 " over %s fits %s\n", r.disk,
		       r.utilisation_ppm > 0 && r.rate_max > 0 ? "yes" : "no",
		       r.rate_max < 200000000 ? "yes" : "no");
}

static void show_contract(void)
{
	struct sl_contract c;
	if (sl_contract_get(file, &c) == 1)
		printf("rate %" PRIu64 " block %" PRIu64 " burst %" PRIu64 "\n", c.rate, c.block, c.burst);
	else
		printf("none\n");
}

static void step(const char *line)
{
	char word[16] = "";
	unsigned long long a = 0, b = 0, c = 0;
	sscanf(line, "%15s %llu %llu %llu", word, &a, &b, &c);
	if (!strcmp(word, "open"))
		open_it(line);
	else if (!strcmp(word, "close"))
		ok(sl_close(file));
	else if (!strcmp(word, "text"))
		printf("%s\n", sl_error());
	else if (!strcmp(word, "refused"))
		refused();
	else if (!strcmp(word, "write"))
		write_it(a, b);
	else if (!strcmp(word, "read"))
		read_it(a, b);
	else if (!strcmp(word, "peek"))
		peek_it(a, b);
	else if (!strcmp(word, "whole"))
		whole(a, b);
	else if (!strcmp(word, "readat"))
		read_at(a, b, c);
	else if (!strcmp(word, "writeat"))
		write_at(a, b, c);
	else if (!strcmp(word, "readranges"))
		ranges(0, line);
	else if (!strcmp(word, "writeranges"))
		ranges(1, line);
	else if (!strcmp(word, "playout"))
		ok(sl_playout_set(file, a));
	else if (!strcmp(word, "keep"))
		ok(sl_keep(file, a));
	else if (!strcmp(word, "seek"))
		seek_it(line);
	else if (!strcmp(word, "tell"))
		place("at", sl_seek(file, 0, SEEK_CUR));
	else if (!strcmp(word, "advance"))
		ok(sl_advance(file, a));
	else if (!strcmp(word, "sync"))
		ok(sl_sync(file));
	else if (!strcmp(word, "durable"))
		place("durable", sl_durable(file));
	else if (!strcmp(word, "length"))
		place("length", sl_length(file));
	else if (!strcmp(word, "truncate"))
		ok(sl_truncate(file, a));
	else if (!strcmp(word, "stream"))
		printf("%s\n", sl_stream(file) ? "yes" : "no");
	else if (!strcmp(word, "contract"))
		show_contract();
	else if (!strcmp(word, "set")) {
		struct sl_contract asked = contract(line);
		ok(sl_contract_set(file, &asked));
	} else if (!strcmp(word, "priority"))
		priority_it(line);
	else if (!strcmp(word, "within"))
		within_it(line);
	else if (!strcmp(word, "drop"))
		ok(sl_contract_set(file, NULL));
	else
		printf("no such step: %s\n", line);
}

int main(int argc, char **argv)
{
	char line[512];
	own_socket = argc > 1 ? argv[1] : NULL;
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		step(line);
		fflush(stdout);
	}
	return 0;
}
