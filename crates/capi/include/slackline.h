/* Slackline for programs in C: read and write volumes, under contract or as best effort.
 *
 * Link with -lslackline (pkg-config slackline). Every function is explained in its man
 * page; sl_open(3) is the one to begin with. A function that fails gives -1 or NULL,
 * sets errno, and sl_error() says in words what went wrong and what to do next.
 *
 * A handle may be used from several threads, one call after the other.
 */
#ifndef SLACKLINE_H
#define SLACKLINE_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open volume with a place in it. */
typedef struct sl_file sl_file;

/* What a program asks of a volume. A field that is 0 is not said. */
struct sl_contract {
	uint64_t rate;  /* bytes a second, sustained; must be said */
	uint64_t block; /* what moves at a time: a power of two from 4 KiB to 32 MiB;
	                   else what suits the rate and the disks */
	uint64_t burst; /* how much may be touched at once past the playout point;
	                   else one block */
};

/* Which best effort goes first, as far as the volume's service and the quota let it. */
enum {
	SL_PRIORITY_UNSAID,      /* as the volume's service says */
	SL_PRIORITY_INTERACTIVE, /* somebody waits for the answer: before the others */
	SL_PRIORITY_NORMAL,
	SL_PRIORITY_BACKGROUND,  /* only when nothing else wants the disk */
};

/* Answers in time for what one handle asks without a stream. A field that is 0 is not said. */
struct sl_in_time {
	uint64_t len;       /* of operations of at most so many bytes; else 64 KiB */
	uint64_t within_ns; /* so soon, in nanoseconds; must be said */
	uint64_t every_ns;  /* if they come at least so far apart on each disk; else within_ns */
};

/* How to open. All zero: as without options. */
struct sl_options {
	const char *socket;          /* the daemon's control socket; NULL: as usual */
	uint64_t size;               /* with O_CREAT: space of the volume that is made */
	struct sl_contract contract; /* with a rate: open under contract */
	uint64_t priority;           /* of what is best effort: SL_PRIORITY_... */
	struct sl_in_time in_time;   /* with a time: what no stream carries is answered in it */
	uint64_t update;             /* with O_RDWR: 1 has a contract read and write at once, in
	                                any order within its burst */
	uint64_t grow_to;            /* a contract that writes makes the volume larger as it fills,
	                                up to this size */
};

/* Why a contract was refused, and what would have fitted. */
struct sl_refusal {
	uint64_t disk;            /* the disk that cannot take it */
	uint64_t utilisation_ppm; /* of that disk with the contract, in parts per million */
	uint64_t deadline_ns;     /* the first deadline, from a common start, that would fail */
	uint64_t excess_ns;       /* and by how much; both 0 where utilisation alone is too much */
	uint64_t rate_max;        /* the largest rate in these blocks that would be taken */
};

/* Opens a volume ("NAME" or "slackline:NAME"), or for reading a file outside the pool (its
 * absolute path). flags: O_RDONLY, O_WRONLY or O_RDWR,
 * with O_CREAT, O_TRUNC and O_APPEND. options may be NULL. */
sl_file *sl_open(const char *target, int flags, const struct sl_options *options);

/* Ends a handle; what was written is on the medium when it returns 0. The handle is gone
 * in any case. */
int sl_close(sl_file *file);

/* As read(2) and write(2). A gap, where a disk failed, is EIO once; the next read goes on
 * behind it. */
ssize_t sl_read(sl_file *file, void *data, size_t len);
ssize_t sl_write(sl_file *file, const void *data, size_t len);

/* Writes all of len bytes; where that fails, some of them may be written. */
int sl_write_all(sl_file *file, const void *data, size_t len);

/* As lseek(2); the end is that of the recorded data. */
int64_t sl_seek(sl_file *file, int64_t offset, int whence);

/* Shows the next bytes where they are, at most len_max, and says how many they are;
 * 0 at the end of the recorded data. They stay until the next call with this handle. */
ssize_t sl_peek(sl_file *file, const void **data, size_t len_max);

/* The same, and all of len bytes, where neither a gap nor the end is before that. Under a
 * contract len is at most its burst (a block at least). */
ssize_t sl_peek_whole(sl_file *file, const void **data, size_t len);

/* Passes len bytes that sl_peek has shown. */
int sl_advance(sl_file *file, size_t len);

/* Copies what lies at a place and leaves the handle where it is. Under a contract for
 * reading it is a place of the window: EINVAL for others. 0 at the end. */
ssize_t sl_read_at(sl_file *file, uint64_t place, void *data, size_t len);

/* Changes what lies at a place and leaves the handle where it is; says how many bytes. Under a
 * contract of a handle that updates it is a place of the window: EINVAL for others. */
ssize_t sl_write_at(sl_file *file, uint64_t place, const void *data, size_t len);

/* A range of a volume: its bytes go to, or come from, the memory at data. */
struct sl_range {
	uint64_t place; /* in bytes from the start of the volume */
	void *data;
	size_t len;   /* in bytes */
	size_t moved; /* set by the call: so many bytes were */
};

/* Reads, or writes, count ranges in one call, at any places and in any order, and leaves the handle
 * where it is. All are asked for at once, as best effort, so that the disk serves them in the order
 * that is best for it. Says how many bytes were moved in all: of ranges beyond the end of what is
 * recorded fewer are read. Ranges that are written do not overlap, nor does memory that is read to
 * (EINVAL). After an error any of them may be moved. */
ssize_t sl_read_ranges(sl_file *file, struct sl_range *ranges, size_t count);
ssize_t sl_write_ranges(sl_file *file, struct sl_range *ranges, size_t count);

/* Goes to a place of the window, forwards or backwards, at no cost. EINVAL, and nothing has
 * changed, for others: sl_seek goes there. */
int sl_playout_set(sl_file *file, uint64_t place);

/* From now on so many bytes behind the handle's place are held in the window. They are part
 * of the burst. */
int sl_keep(sl_file *file, uint64_t len);

/* Waits until the daemon has what was written; sl_sync, until it is on the medium. */
int sl_flush(sl_file *file);
int sl_sync(sl_file *file);

/* Cuts what is recorded to len; the space stays reserved. */
int sl_truncate(sl_file *file, uint64_t len);

/* The end of the recorded data, and the space reserved. */
int64_t sl_length(sl_file *file);
int64_t sl_size(sl_file *file);

/* Under a contract for writing: everything before this place is on the medium. Does not
 * wait. */
int64_t sl_durable(sl_file *file);

/* The number of the stream that carries the handle's bytes; 0 without one. */
uint64_t sl_stream(sl_file *file);

/* Under a contract: this program will do nothing with the handle for at most so many
 * nanoseconds (a day counts at the most). Without that the daemon ends the contract of a
 * program that is silent for too long (5 minutes, unless it is told otherwise), and the next
 * call fails with ETIMEDOUT. The pause ends when the program has moved on by about a block, or
 * asks the daemon for something. */
int sl_pause(sl_file *file, uint64_t nanoseconds);

/* What the daemon said when it took a contract for reading, or of the last jump since, counted
 * from its answer. */
struct sl_sought {
	uint64_t ready_ns;  /* until the first bytes are there, at the most */
	uint64_t steady_ns; /* from when on the contract holds in full */
};

/* 1 and these times, 0 without a contract for reading on a volume. A jump is made when the first
 * byte behind a sl_seek is read. sought may be NULL. */
int sl_sought(sl_file *file, struct sl_sought *sought);

/* The contract of a handle: 1 and its terms, 0 without one. contract may be NULL. */
int sl_contract_get(sl_file *file, struct sl_contract *contract);

/* Takes a contract, another one, or, with NULL, none. Refused (EBUSY), nothing changes,
 * and sl_refused() has the figures. */
int sl_contract_set(sl_file *file, const struct sl_contract *contract);

/* The priority of a handle's best effort, and another one for what comes next. */
int sl_priority_get(sl_file *file);
int sl_priority_set(sl_file *file, int priority);

/* The contract of a handle for answers in time: 1 and its terms, 0 without one. in_time may
 * be NULL. Takes one, another one, or, with NULL, none. Refused (EBUSY), nothing changes. */
int sl_in_time_get(sl_file *file, struct sl_in_time *in_time);
int sl_in_time_set(sl_file *file, const struct sl_in_time *in_time);

/* A volume as a FILE. mode is that of fopen(3). */
FILE *sl_fopen(const char *target, const char *mode, const struct sl_options *options);

/* What went wrong last on this thread, and what to do next. Good until the next failure
 * on this thread. */
const char *sl_error(void);

/* 1 and the figures, where the last failure on this thread was a refusal. */
int sl_refused(struct sl_refusal *refusal);

/* 1 where the last failure on this thread may pass when the same is tried again, though nobody
 * gives anything back: admission could not decide beside what waits at that moment, or too
 * much waits. */
int sl_try_again(void);

/* The version of the library, for example "0.1.0". */
const char *sl_version(void);

#ifdef __cplusplus
}
#endif

#endif
