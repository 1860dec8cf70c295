//! What small programs in C and C++ do with volumes through the shim, call by call: files of the C
//! library, forks, descriptors that are closed by other calls than close, and a daemon that is stopped.

use crate::installed::run;
use crate::shim::shimmed;
use crate::support::{Daemon, PROFILE, Scratch, noise, signal, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Longer than this none of these programs takes: one that does hangs.
const HANGS: &str = "120";

/// Rates of the shim: a stream under contract, and none, which is best effort.
const WAYS: [&str; 2] = ["1MB/s", ""];

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((unused)) static int opened(const char *path, int flags) {
    int fd = open(path, flags, 0600);
    if (fd < 0) { printf("%s: %s\n", path, strerror(errno)); fflush(stdout); _exit(1); }
    return fd;
}
__attribute__((unused)) static void put(int fd, const char *text) {
    ssize_t done = write(fd, text, strlen(text));
    if (done != (ssize_t)strlen(text)) printf("wrote %zd: %s\n", done, strerror(errno));
}
__attribute__((unused)) static void get(int fd) {
    char text[64] = { 0 };
    ssize_t done = read(fd, text, sizeof text - 1);
    printf("%s\n", done < 0 ? strerror(errno) : text);
}
"#;

/// Compiles `body` by `cc` or `c++`.
fn built(dir: &Scratch, compiler: &str, body: &str) -> PathBuf {
    let (source, program) = (dir.path("program.c"), dir.path("program"));
    let head = if compiler == "cc" { HEAD } else { "" };
    std::fs::write(&source, format!("{head}{body}")).unwrap();
    let language = if compiler == "cc" { "c" } else { "c++" };
    let mut cc = Command::new(compiler);
    cc.args(["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-x", language]);
    run(cc.arg(&source).arg("-o").arg(&program));
    program
}

/// Runs it to its end; gives its exit status, and what it said on standard output and error.
fn ran(dir: &Scratch, program: &Path, rate: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", HANGS, "env"]);
    let shim = shimmed(dir, "env", rate);
    for (name, value) in shim.get_envs() {
        let value = value.unwrap().to_str().unwrap();
        if name != "SLACKLINE_RATE" || !rate.is_empty() {
            command.arg(format!("{}={value}", name.to_str().unwrap()));
        }
    }
    // So short that there are several in what these programs move.
    if !rate.is_empty() {
        command.arg("SLACKLINE_BLOCK=64KiB");
    }
    let output = command.arg(program).args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What it says, and nothing on standard error.
#[track_caller]
fn says(dir: &Scratch, program: &Path, rate: &str, args: &[&str]) -> String {
    let (status, out, err) = ran(dir, program, rate, args);
    assert_eq!((status, err.as_str()), (Some(0), ""), "at {rate:?}: {out}");
    out
}

fn held(dir: &Scratch, volume: &str) -> Vec<u8> {
    dir.run(&["export", volume, "-"]).succeeded().out
}

fn served() -> (Scratch, Daemon) {
    let dir = Scratch::new();
    let daemon = dir.serve(&dir.make_pool(&["a"]));
    (dir, daemon)
}

/// The C library writes what its files hold when a program exits. It did that when no volume was open
/// any more, and the last bytes were lost, with status 0.
#[test]
fn what_a_file_of_the_c_library_holds_at_the_exit_is_written() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    FILE *file = fopen(argv[1], "w");
    fputs("written, ", file);
    fflush(file);
    fputs("and held", file);
    FILE *other = fdopen(opened(argv[2], O_WRONLY | O_CREAT | O_TRUNC), "w");
    if (other) fputs("the same", other);
    if (fork() == 0) exit(0); // what its parent holds is its parent's to write
    wait(NULL);
    return 0;
}
"#,
    );
    for rate in WAYS {
        says(&dir, &program, rate, &["/slackline/v", "/slackline/w"]);
        assert_eq!(held(&dir, "v"), b"written, and held", "at {rate:?}");
        assert_eq!(held(&dir, "w"), b"the same", "at {rate:?}");
    }
}

/// One that another thread holds for ever keeps nobody from exiting, and that is said.
#[test]
fn a_file_of_the_c_library_that_a_thread_holds_keeps_no_program_from_exiting() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
static int held[2];
static void *hold(void *file) {
    flockfile(file);
    if (write(held[1], "", 1) < 0) abort();
    pause();
    return NULL;
}
int main(int argc, char **argv) {
    (void)argc;
    FILE *file = fopen(argv[1], "w"), *other = fopen(argv[2], "w");
    fputs("of the thread", file);
    fputs("of nobody", other);
    pthread_t thread;
    if (pipe(held) < 0 || pthread_create(&thread, NULL, hold, file)) abort();
    char byte;
    if (read(held[0], &byte, 1) < 0) abort();
    return 0;
}
"#,
    );
    let (status, _, said) = ran(&dir, &program, "1MB/s", &["/slackline/v", "/slackline/w"]);
    assert!(status == Some(0) && said.contains("another thread uses a FILE"), "{status:?} {said}");
    assert_eq!(held(&dir, "w"), b"of nobody");
}

/// A piece larger than what the window takes at once was cut there: the C library forgets what a cookie
/// does not take.
#[test]
fn a_file_of_the_c_library_takes_a_piece_that_is_larger_than_the_window() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    size_t len = 2 << 20;
    char *bytes = malloc(len);
    for (size_t i = 0; i < len; i++) bytes[i] = i * 7 >> 3;
    FILE *file = fopen(argv[1], "w");
    size_t written = fwrite(bytes, 1, len, file);
    printf("%zu %d\n", written, fclose(file));
    return 0;
}
"#,
    );
    let wanted: Vec<u8> = (0..2u64 << 20).map(|i| ((i * 7) >> 3) as u8).collect();
    for rate in WAYS {
        let said = says(&dir, &program, rate, &["/slackline/v"]);
        assert_eq!(said, format!("{} 0\n", 2 << 20), "at {rate:?}");
        assert!(held(&dir, "v") == wanted, "at {rate:?}");
    }
}

/// They open by fopen and then read and write the descriptor of that, which there was not.
#[test]
fn streams_of_c_plus_plus_read_and_write_volumes() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "c++",
        r#"
#include <fstream>
#include <iostream>
#include <string>
static std::ofstream last;
int main(int, char **argv) {
    std::ofstream out(argv[1]);
    out << "hello " << 42 << "\n";
    for (int i = 0; i < 20000; i++) out << i << "\n";
    out.close();
    std::cout << out.good();
    std::ifstream in(argv[1]);
    std::string word;
    long number, sum = 0;
    in >> word >> number;
    for (long one; in >> one;) sum += one;
    in.clear();
    in.seekg(0, std::ios::end);
    std::cout << " " << word << " " << number << " " << sum << " " << in.tellg() << "\n";
    std::fstream both(argv[1], std::ios::in | std::ios::out);
    both.seekp(6);
    both << "77";
    both.seekg(0);
    std::getline(both, word);
    both.close();
    std::ofstream more(argv[1], std::ios::app);
    more << "end\n";
    more.close();
    std::cout << word << " " << more.good() << "\n";
    last.open(argv[2]);
    last << "not closed";
}
"#,
    );
    for rate in WAYS {
        let said = says(&dir, &program, rate, &["/slackline/v", "/slackline/w"]);
        assert_eq!(said, "1 hello 42 199990000 108899\nhello 77 1\n", "at {rate:?}");
        assert!(held(&dir, "v").ends_with(b"19999\nend\n"), "at {rate:?}");
        assert_eq!(held(&dir, "w"), b"not closed", "at {rate:?}");
    }
}

/// Two users of a lock file both had it, and "wx" emptied a recording.
#[test]
fn a_volume_that_must_be_new_is_made_by_one_and_empties_none() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    int flags = O_CREAT | O_EXCL | O_RDWR, won = 0;
    if (argc > 1) return open("/slackline/lock", flags, 0600) < 0 ? errno : 0;
    int fd = opened("/slackline/v", flags | O_TRUNC);
    put(fd, "recorded");
    close(fd);
    printf("%d", open("/slackline/v", flags | O_TRUNC, 0600));
    printf(" %s\n", strerror(errno));
    FILE *file = fopen("/slackline/v", "wx");
    printf("%d ", file != NULL);
    printf("%s\n", strerror(errno));
    file = fopen("/slackline/w", "wbx+");
    printf("%d ", file && fputs("new", file) >= 0);
    printf("%d\n", file ? fclose(file) : -2);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) return execl(argv[0], argv[0], "lock", NULL);
    for (int status; wait(&status) > 0;)
        if (status == 0) won++;
        else if (WEXITSTATUS(status) != EEXIST) printf("%d\n", status);
    printf("%d has the lock\n", won);
    unsetenv("SLACKLINE_CREATE");
    return 0;
}
"#,
    );
    for (place, rate) in WAYS.into_iter().enumerate() {
        let said = says(&dir, &program, rate, &[]);
        let wanted = "-1 File exists\n0 File exists\n1 0\n1 has the lock\n";
        assert_eq!(said, wanted, "at {rate:?}");
        assert_eq!((held(&dir, "v"), held(&dir, "w")), (b"recorded".to_vec(), b"new".to_vec()));
        for volume in ["v", "w", "lock"] {
            dir.run(&["volume", "delete", volume, "--yes"]).succeeded();
        }
        // One that could not be opened is not left behind.
        if place == 0 {
            let (status, out, said) = ran(&dir, &program, "900MB/s", &[]);
            assert!(status == Some(1) && said.contains("cannot keep"), "{out} {said}");
            dir.run(&["volume", "show", "v"]).failed(1, &["there is no volume"]);
        }
    }
}

/// What a child closed and opened again under the same number took its parent's stream with it; or the
/// child waited for ever for a thread that it does not have.
#[test]
fn a_child_that_closes_and_opens_leaves_its_parents_volumes_alone() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
static void child(const char *path, int parents, int how) {
    if (how == 0) close(parents);
    if (how == 1) closefrom(3);
    if (how == 2) dup2(1, parents);
    int fd = opened(path, O_RDWR | O_CREAT);
    if (dup2(fd, parents) != parents) abort(); // it gets its parent's number
    close(fd);
    put(parents, "child");
    lseek(parents, 0, SEEK_SET);
    get(parents);
    exit(0);
}
int main(int argc, char **argv) {
    (void)argc;
    int first = opened(argv[1], O_WRONLY | O_CREAT | O_TRUNC), fd = fcntl(first, F_DUPFD, 100);
    close(first);
    put(fd, "begin");
    for (int how = 0; how < 3; how++) {
        fflush(stdout);
        if (fork() == 0) child(argv[2], fd, how);
        wait(NULL);
        put(fd, ", more");
    }
    // In a child it is none, and one of vfork closes its own.
    if (fork() == 0) { printf("%d\n", write(fd, "x", 1) < 0 && errno == EBADF); return 0; }
    wait(NULL);
    if (vfork() == 0) { close_range(3, ~0U, 0); _exit(0); }
    wait(NULL);
    put(fd, ", end");
    printf("%d\n", close(fd));
    return 0;
}
"#,
    );
    for rate in WAYS {
        let said = says(&dir, &program, rate, &["/slackline/v", "/slackline/w"]);
        let child = "child\n".repeat(3);
        assert_eq!(said, format!("{child}1\n0\n"), "at {rate:?}");
        assert_eq!(held(&dir, "v"), b"begin, more, more, more, end", "at {rate:?}");
    }
}

/// A lock that another thread held at the fork was never free again in the child.
#[test]
fn a_child_goes_on_whatever_other_threads_did_when_it_was_made() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
static int fd;
static void *ask(void *none) {
    for (;;) lseek(fd, 0, SEEK_CUR);
    return none;
}
static void *stream(void *none) {
    for (;;) { FILE *file = fdopen(dup(fd), "w"); fileno(file); fclose(file); }
    return none;
}
int main(int argc, char **argv) {
    (void)argc;
    fd = opened(argv[1], O_RDWR | O_CREAT);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, i ? ask : stream, NULL)) abort();
    }
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        if (child == 0) { close(fd); fdopen(1, "w"); _exit(lseek(fd, 0, SEEK_CUR) == -1 ? 0 : 1); }
        int status;
        if (waitpid(child, &status, 0) != child || status) printf("%d\n", status);
    }
    printf("done\n");
    fflush(stdout);
    _exit(0);
}
"#,
    );
    assert_eq!(says(&dir, &program, "", &["/slackline/v"]), "done\n");
}

/// The number of a volume that was closed by another call than close was still the volume: whoever got
/// it next read the volume's bytes.
#[test]
fn a_volume_that_another_call_closes_is_none_any_more() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    std::fs::write(&file, "of the file").unwrap();
    let program = built(
        &dir,
        "cc",
        r#"
static void fill(int number) { // it is the next that the kernel gives
    int got;
    while ((got = syscall(SYS_dup, 0)) < number)
        if (got < 0) abort();
    syscall(SYS_close, got);
}
int main(int argc, char **argv) {
    (void)argc;
    int fd = opened("/slackline/v", O_RDWR | O_CREAT);
    put(fd, "of the volume");
    lseek(fd, 3, SEEK_SET);
    FILE *file = fdopen(fd, "r");
    char text[64] = { 0 };
    printf("%s ", fgets(text, sizeof text, file));
    printf("%d ", fileno(file) == fd);
    printf("%d\n", fclose(file));
    for (int how = 0; how < 5; how++) {
        int again = how ? opened("/slackline/v", O_RDWR) : fd;
        if (how == 1) close_range(again, again, 0);
        if (how == 2) closefrom(again);
        if (how > 2) syscall(SYS_close, again);
        fill(again);
        if (how < 4) {
            int other = opened(argv[1], O_RDONLY);
            printf("%s ", other == again ? "same" : "other");
            get(other);
            close(other);
        } else {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
            printf("%s ", pair[0] == again ? "same" : "other");
            put(pair[1], "of the pair");
            get(pair[0]);
        }
    }
    FILE *last = fopen("/slackline/v", "r");
    FILE *twice = fdopen(fileno(last), "w");
    printf("%d ", twice != NULL);
    printf("%s\n", strerror(errno));
    return 0;
}
"#,
    );
    for rate in WAYS {
        let said = says(&dir, &program, rate, &[&file]);
        let same = "same of the file\n".repeat(4);
        let wanted = format!("the volume 1 0\n{same}same of the pair\n0 Invalid argument\n");
        assert_eq!(said, wanted, "at {rate:?}");
    }
}

/// An emulated disk, which goes with this.
struct Emulated(Child);

impl Drop for Emulated {
    fn drop(&mut self) {
        signal(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

/// What a list of memory had filled was thrown away where its next part met a gap.
#[test]
fn a_list_of_memory_keeps_what_was_read_before_a_gap() {
    use std::os::unix::fs::MetadataExt;
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !root || !Path::new("/dev/fuse").exists() {
        return skips::not_run("needs root and /dev/fuse");
    }
    let dir = Scratch::new();
    let mount = dir.path("mount");
    let mut emulate = Command::new(env!("CARGO_BIN_EXE_slackline"));
    emulate.args(["disk", "emulate", "ssd-sata", "--size", "64MiB", "--no-realtime"]);
    emulate.args(["--fault", "slow 0..1MiB 1", "--mount"]).arg(&mount);
    let _emulated = Emulated(emulate.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until(|| mount.join("disk.img").exists());
    let disk = vec![mount.join("disk.img").display().to_string()];
    let profile = dir.text("profile.toml");
    std::fs::write(&profile, PROFILE).unwrap();
    dir.run(&["pool", "create", "test", "--profile", &profile, &disk[0]]).succeeded();
    let _daemon = dir.serve(&disk);
    let bytes = noise(5, 1 << 20).bytes();
    dir.run_with(&["record", "v", "--create", "1MiB", "--rate", "8MB/s"], &bytes).recorded();
    let whole = std::fs::read(&disk[0]).unwrap();
    const GAP: usize = 512 << 10;
    let at = whole.windows(64).position(|some| some == &bytes[GAP..GAP + 64]).unwrap();
    std::fs::write(mount.join("control"), format!("error {at}..{} reads", at + 4096)).unwrap();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    char a[1024], b[1024];
    struct iovec parts[2] = { { a, sizeof a }, { b, sizeof b } };
    int fd = opened("/slackline/v", O_RDONLY), out = opened(argv[1], O_WRONLY | O_CREAT);
    ssize_t done = read(fd, a, sizeof a), total = 0;
    do {
        if (done < 0) {
            printf("%zd %s at %ld\n", total, strerror(errno), (long)lseek(fd, 0, SEEK_CUR));
            continue;
        }
        total += done;
        if (write(out, a, done < 1024 ? done : 1024) < 0 || (done > 1024 && write(out, b, done - 1024) < 0)) abort();
    } while ((done = readv(fd, parts, 2)) != 0);
    return 0;
}
"#,
    );
    let out = dir.text("out");
    let said = says(&dir, &program, "1MB/s", &[&out]);
    let read = std::fs::read(&out).unwrap();
    let gap = bytes.len() - read.len();
    assert_eq!(said, format!("{GAP} Input/output error at {}\n", GAP + gap));
    assert!(read == [&bytes[..GAP], &bytes[GAP + gap..]].concat(), "{gap}");
}

/// Flags and places that a program asks for, and that did something else.
#[test]
fn appending_shared_maps_and_the_end_of_the_data_are_what_they_are_for_files() {
    let (dir, _daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 3
#endif
int main(void) {
    int fd = opened("/slackline/v", O_RDWR | O_CREAT | O_TRUNC);
    put(fd, "begin");
    lseek(fd, 0, SEEK_SET);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_APPEND);
    put(fd, ", end");
    printf("%d ", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    fcntl(fd, F_SETFL, 0);
    lseek(fd, 0, SEEK_SET);
    put(fd, "BEGIN");
    lseek(fd, 0, SEEK_SET);
    get(fd);
    for (int way = MAP_SHARED; way <= MAP_SHARED_VALIDATE; way++) {
        errno = 0;
        void *map = mmap(NULL, 4096, PROT_READ, way, fd, 0);
        printf("%s ", map == MAP_FAILED ? strerror(errno) : "mapped");
    }
    off_t at = lseek(fd, 3, SEEK_DATA), hole = lseek(fd, at, SEEK_HOLE);
    printf("\n%ld %ld ", (long)at, (long)hole);
    for (int which = 0; which < 4; which++) {
        errno = 0;
        off_t no = lseek(fd, which < 2 ? hole : hole + 5, which % 2 ? SEEK_DATA : SEEK_HOLE);
        printf("%ld %d ", (long)no, errno == ENXIO);
    }
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
    return 0;
}
"#,
    );
    for rate in WAYS {
        let (status, said, err) = ran(&dir, &program, rate, &[]);
        let wanted = "1 BEGIN, end\nNo such device mapped No such device \n\
                      3 10 -1 1 -1 1 -1 1 -1 1 10\n";
        assert_eq!((status, said.as_str()), (Some(0), wanted), "at {rate:?}: {err}");
        assert_eq!(err.matches("map it by MAP_PRIVATE").count(), 2, "{err}");
    }
}

/// Descriptors of volumes are doubled, put in the place of others, and others in theirs.
#[test]
fn descriptors_are_doubled_onto_and_from_volumes() {
    let (dir, _daemon) = served();
    let file = dir.text("file");
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    int v = opened("/slackline/v", O_RDWR | O_CREAT), w = opened("/slackline/w", O_RDWR | O_CREAT);
    int plain = opened(argv[1], O_RDWR | O_CREAT | O_TRUNC), two = dup(v), out = dup(1);
    put(v, "one, ");
    close(v);
    put(two, "two, ");
    printf("%d ", dup2(two, w) == w); // what w was is closed, and v goes on there
    put(w, "three, ");
    close(two);
    put(w, "four");
    printf("%d ", dup2(w, plain) == plain); // a file's number
    put(plain, ", five");
    fflush(stdout);
    printf("%d ", dup2(plain, 1) == 1); // the standard output is a volume's
    dup2(out, 1);
    printf("%d ", dup2(out, w) == w); // and a volume's number the standard output
    fflush(stdout);
    put(w, "told ");
    lseek(plain, 0, SEEK_SET);
    get(plain);
    int third = fcntl(plain, F_DUPFD_CLOEXEC, 100);
    close(plain);
    printf("%d %d\n", third, dup2(third, third) == third);
    put(third, ", six");
    printf("%d ", close(third));
    printf("%d\n", write(third, "x", 1) < 0 && errno == EBADF);
    return 0;
}
"#,
    );
    for rate in WAYS {
        let said = says(&dir, &program, rate, &[&file]);
        let wanted = "1 1 1 1 told one, two, three, four, five\n100 1\n0 1\n";
        assert_eq!(said, wanted, "at {rate:?}");
        assert_eq!(held(&dir, "v"), b"one, two, three, four, five, six", "at {rate:?}");
        assert_eq!((held(&dir, "w"), std::fs::read(&file).unwrap()), (Vec::new(), Vec::new()));
        dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
    }
}

/// A program that had a volume open waited at its end for as long as the daemon was stopped.
#[test]
fn a_daemon_that_is_stopped_keeps_no_program_from_ending() {
    let (dir, daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    put(opened(argv[2], O_WRONLY | O_CREAT), "written");
    FILE *file = fopen(argv[3], "w");
    fputs("held", file);
    opened(argv[2], O_RDONLY);
    kill(atoi(argv[1]), SIGSTOP);
    return 0;
}
"#,
    );
    for (rate, [v, w]) in WAYS.into_iter().zip([["v1", "w1"], ["v2", "w2"]]) {
        let [pid, at_v, at_w] =
            [daemon.id().to_string(), format!("/slackline/{v}"), format!("/slackline/{w}")];
        let (status, _, said) = ran(&dir, &program, rate, &[&pid, &at_v, &at_w]);
        daemon.signal("CONT");
        assert_eq!(status, Some(0), "at {rate:?}: {said}");
        for volume in [v, w] {
            let words = format!("slackline: {volume}: the daemon does not answer");
            assert_eq!(said.matches(&words).count(), 1, "at {rate:?}: {said}");
        }
        wait_until(|| held(&dir, v) == b"written");
    }
}

/// Where a thread was in a call on it at the exit, nobody waited for what had been written to a volume.
#[test]
fn what_a_thread_still_writes_at_the_exit_is_confirmed_or_said() {
    let (dir, daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
static void *write_on(void *path) {
    static char bytes[1000];
    int fd = opened(path, O_WRONLY | O_CREAT);
    while (write(fd, bytes, sizeof bytes) > 0);
    pause();
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 3 || pthread_create(&thread, NULL, write_on, argv[2])) abort();
    usleep(200000);
    kill(atoi(argv[1]), SIGSTOP);
    usleep(200000);
    return 0;
}
"#,
    );
    for (rate, volume) in WAYS.into_iter().zip(["v1", "v2"]) {
        let [pid, path] = [daemon.id().to_string(), format!("/slackline/{volume}")];
        let (status, _, said) = ran(&dir, &program, rate, &[&pid, &path]);
        daemon.signal("CONT");
        assert_eq!(status, Some(0), "at {rate:?}: {said}");
        let words = format!("slackline: {volume}: the daemon does not answer");
        assert_eq!(said.matches(&words).count(), 1, "at {rate:?}: {said}");
    }
}

/// Whoever writes to a daemon that is gone hears so, and is not ended by a signal.
#[test]
fn a_daemon_that_is_gone_is_an_error_and_no_signal() {
    let (dir, daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
int main(int argc, char **argv) {
    (void)argc;
    int fd = opened(argv[2], O_WRONLY | O_CREAT);
    put(fd, "written");
    kill(atoi(argv[1]), SIGKILL);
    usleep(200000);
    int failed = 0;
    for (int i = 0; i < 100 && !failed; i++) failed = write(fd, "more", 4) < 0;
    printf("%d\n", failed);
    fflush(stdout);
    _exit(0);
}
"#,
    );
    let (status, told, said) = ran(&dir, &program, "", &[&daemon.id().to_string(), "/slackline/v"]);
    assert_eq!((status, &*told), (Some(0), "1\n"), "{said}");
}

/// Where another thread was in a call of the volume, close was answered before anything was confirmed, and told
/// of no loss.
#[test]
fn a_close_beside_another_threads_call_tells_of_what_is_lost() {
    let (dir, daemon) = served();
    let program = built(
        &dir,
        "cc",
        r#"
static int fd;
static void *look(void *unused) {
    struct stat is;
    (void)unused;
    for (;;) fstat(fd, &is);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    (void)argc;
    fd = opened(argv[2], O_WRONLY | O_CREAT);
    if (pthread_create(&thread, NULL, look, NULL)) abort();
    put(fd, "written");
    kill(atoi(argv[1]), SIGKILL);
    usleep(200000);
    printf("%d\n", close(fd));
    fflush(stdout);
    _exit(0);
}
"#,
    );
    let (status, told, said) = ran(&dir, &program, "", &[&daemon.id().to_string(), "/slackline/v"]);
    assert_eq!((status, &*told), (Some(0), "-1\n"), "{said}");
}
