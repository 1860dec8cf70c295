/* Writes frames under contract, and goes back to write one of them anew by the same stream. Then
 * plays them out of order and overwrites each, within the burst: what lies there is in memory.
 * usage: out_of_order VOLUME */
#include <err.h>
#include <slackline.h>
#include <string.h>

enum { FRAME = 16 << 10 };

int main(int argc, char **argv)
{
	struct sl_options options = { .size = 4 << 20, .contract = { 1000000, 0, 4 * FRAME } };
	unsigned char frame[FRAME];
	sl_file *out = sl_open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC, &options);
	for (int i = 0; i < 32; i++)
		if (!out || sl_write_all(out, memset(frame, i, FRAME), FRAME) < 0)
			errx(1, "%s", sl_error());
	/* By the end of this call all of them are on the medium. */
	if (sl_playout_set(out, 8 * FRAME) < 0 ||
	    sl_write_all(out, memset(frame, 88, FRAME), FRAME) < 0 || sl_close(out) < 0)
		errx(1, "%s", sl_error());
	options.update = 1;
	sl_file *film = sl_open(argv[argc - 1], O_RDWR, &options);
	for (uint64_t i = 0; i < 32; i++) {
		uint64_t place = (i / 4 * 4 + (i + 3) % 4) * FRAME;
		if (!film || sl_playout_set(film, i / 4 * 4 * FRAME) < 0 ||
		    sl_read_at(film, place, frame, FRAME) < 0)
			errx(1, "%s", sl_error());
		printf("%d\n", frame[0]);
		if (sl_write_at(film, place, memset(frame, frame[0] + 100, FRAME), FRAME) < 0)
			errx(1, "%s", sl_error());
	}
	return sl_close(film) < 0;
}
