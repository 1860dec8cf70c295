/* Writes frames under contract, goes back and writes one of them anew by the same stream,
 * and plays them out of order: what lies within the burst is in memory.
 * usage: out_of_order VOLUME */
#include <err.h>
#include <slackline.h>
#include <string.h>

enum { FRAME = 16 << 10 };
static unsigned char frame[FRAME];

static ssize_t put(sl_file *out, int value)
{
	ssize_t n = 0;
	for (size_t done = 0; done < FRAME && n >= 0; done += n)
		n = sl_write(out, (char *)memset(frame, value, FRAME) + done, FRAME - done);
	return n;
}

int main(int argc, char **argv)
{
	struct sl_options options = { .size = 4 << 20, .contract = { 1000000, 0, 4 * FRAME } };
	const int order[] = { 3, 0, 1, 2 };
	sl_file *out = sl_open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC, &options);
	for (int i = 0; i < 32; i++)
		if (!out || put(out, i) < 0)
			errx(1, "%s", sl_error());
	/* From here on all of them are on the medium. */
	if (sl_playout_set(out, 8 * FRAME) < 0 || put(out, 88) < 0 || sl_close(out) < 0)
		errx(1, "%s", sl_error());
	sl_file *film = sl_open(argv[argc - 1], O_RDONLY, &options);
	for (uint64_t i = 0; film && i < 32; i++) {
		if (sl_read_at(film, (i / 4 * 4 + order[i % 4]) * FRAME, frame, FRAME) < 0 ||
		    (i % 4 == 3 && sl_playout_set(film, (i + 1) * FRAME) < 0))
			errx(1, "%s", sl_error());
		printf("%d\n", frame[0]);
	}
	return !film || sl_close(film) < 0;
}
