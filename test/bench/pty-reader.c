/*
 * Reads a pseudo-terminal as fast as C can: the ceiling of the bench's row `out`.
 * usage: pty-reader COMMAND    build: cc -O2 -o pty-reader pty-reader.c -lutil
 * Prints the bytes read and the seconds from the first to the last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  int master;
  if (argc != 2) {
    return 2;
  }
  pid_t child = forkpty(&master, NULL, NULL, NULL);
  if (child < 0) {
    perror("forkpty");
    return 1;
  }
  if (child == 0) {
    execl("/bin/bash", "bash", "-c", argv[1], NULL);
    _exit(127);
  }
  char *buffer = malloc(BUFFER_BYTES);
  long bytes = 0;
  double first = 0;
  for (;;) {
    ssize_t n = read(master, buffer, BUFFER_BYTES);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      break;
    }
    if (bytes == 0) {
      first = now();
    }
    bytes += n;
  }
  printf("%ld %.6f\n", bytes, now() - first);
  return 0;
}
