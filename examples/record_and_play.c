/* Records a video to a volume under contract and plays it back, without a copy of its own.
 * usage: record_and_play VIDEO VOLUME PLAYED */
#include <err.h>
#include <slackline.h>

int main(int argc, char **argv)
{
	struct sl_options options = { .size = 64 << 20, .contract = { .rate = 2000000 } };
	static char bytes[65536];
	const void *data;
	ssize_t len;
	FILE *video, *played;
	if (argc != 4 || !(video = fopen(argv[1], "rb")) || !(played = fopen(argv[3], "wb")))
		errx(2, "usage: record_and_play VIDEO VOLUME PLAYED");

	FILE *out = sl_fopen(argv[2], "wb", &options);
	while (out && (len = fread(bytes, 1, sizeof bytes, video)) > 0)
		fwrite(bytes, 1, len, out);
	if (!out || fclose(out) != 0) /* now it is on the medium */
		errx(1, "%s", sl_error());

	sl_file *in = sl_open(argv[2], O_RDONLY, &options);
	while (in && (len = sl_peek(in, &data, 1 << 20)) > 0)
		if (fwrite(data, 1, len, played) < (size_t)len || sl_advance(in, len) < 0)
			break;
	if (!in || len != 0 || sl_close(in) < 0)
		errx(1, "%s", sl_error());
	return fclose(played) != 0;
}
