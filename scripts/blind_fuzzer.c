/* A stand-in for libFuzzer where there is no C++ compiler.
 *
 * It changes seeds at random, without looking at coverage, and understands the few
 * options scripts/fuzz passes: -max_total_time, -artifact_prefix and directories of seeds.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 4096, MOST_SEEDS = 4096, TIMEOUT_SECONDS = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static uint8_t input[LONGEST];
static size_t length;
static char failure[4096] = "failing-input";

static struct {
    uint8_t *data;
    size_t size;
} seeds[MOST_SEEDS];
static size_t seed_count = 1; /* the first one is empty */

static uint64_t state;

static size_t below(size_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)((state >> 16) % bound);
}

/* Keeps the input that was running; only calls that are safe in a signal handler. */
static void fail(int signal_number) {
    static const char message[] = "a fuzz target failed; its input is in the failures folder\n";
    int file = open(failure, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, input, length) < 0 || write(2, message, sizeof message - 1) < 0)
        _exit(2);
    signal(signal_number, SIG_DFL);
    _exit(1);
}

static void read_seeds(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory)) && seed_count < MOST_SEEDS;) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        FILE *file = fopen(name, "rb");
        if (!file) continue;
        size_t size = fread(input, 1, LONGEST, file);
        fclose(file);
        uint8_t *data = malloc(size + 1);
        if (!data) abort();
        memcpy(data, input, size);
        seeds[seed_count].data = data;
        seeds[seed_count++].size = size;
    }
    closedir(directory);
}

static void change(void) {
    size_t at = below(length + 1);
    switch (below(5)) {
    case 0: /* another byte */
        if (at < length) input[at] = (uint8_t)below(256);
        break;
    case 1: /* another bit */
        if (at < length) input[at] ^= (uint8_t)(1u << below(8));
        break;
    case 2: /* a byte more */
        if (length == LONGEST) break;
        memmove(input + at + 1, input + at, length - at);
        input[at] = (uint8_t)below(256);
        length++;
        break;
    case 3: /* shorter */
        length = at;
        break;
    default: /* several random bytes at the end */
        for (size_t more = below(32); more && length < LONGEST; more--)
            input[length++] = (uint8_t)below(256);
    }
}

int main(int argc, char **argv) {
    long seconds = 30;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "-max_total_time=", 16)) seconds = atol(argv[i] + 16);
        else if (!strncmp(argv[i], "-artifact_prefix=", 17))
            snprintf(failure, sizeof failure, "%sfailing-input", argv[i] + 17);
        else if (argv[i][0] != '-') read_seeds(argv[i]);
    }
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    signal(SIGABRT, fail);
    signal(SIGSEGV, fail);
    signal(SIGALRM, fail);

    time_t end = time(NULL) + seconds;
    unsigned long long runs = 0;
    state = (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid() + 1;
    do {
        size_t seed = below(seed_count);
        length = seeds[seed].size;
        if (length) memcpy(input, seeds[seed].data, length);
        for (size_t changes = below(8); changes; changes--) change();
        alarm(TIMEOUT_SECONDS);
        LLVMFuzzerTestOneInput(input, length);
        runs++;
    } while (time(NULL) < end);
    alarm(0);
    fprintf(stderr, "%llu inputs, none failed\n", runs);
    return 0;
}
