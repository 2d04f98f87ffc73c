/**
 * The system calls Node has no name for, typed, for Linux on x64 and arm64.
 *
 * Each says what becomes of errno: what can happen in good health comes back as a value, everything
 * else is thrown as a `PosixFault`. errno is read straight after the call, before anything else can
 * change it.
 */
import { readdirSync } from 'node:fs';
import koffi from 'koffi';
import { Fault } from '#chassis/fault.js';

/** A system call failed in a way its caller did not ask to hear about. */
export class PosixFault extends Fault {
  override readonly name = 'PosixFault';
  readonly errno: number;

  constructor(call: string, errno: number) {
    super(`${call}: errno ${errno}`);
    this.errno = errno;
  }
}

/** Answers of `read` and `write` that are no count. Negative, as counts never are. */
export const wouldBlock = -1;
/** The other side of the terminal is gone: nothing more will come. */
export const hungUp = -2;

export const epollIn = 0x001;
export const epollOut = 0x004;

const libc = koffi.load(null);

// Fixed arguments stand for the variadic ones: on Linux both processors pass integers alike.
const call = {
  read: typed<(fd: number, into: Uint8Array, count: number) => number>(
    'intptr_t read(int, void *, size_t)',
  ),
  write: typed<(fd: number, from: Uint8Array, count: number) => number>(
    'intptr_t write(int, const void *, size_t)',
  ),
  close: typed<(fd: number) => number>('int close(int)'),
  fcntl: typed<(fd: number, command: number, argument: number) => number>(
    'int fcntl(int, int, int)',
  ),
  ioctl: typed<(fd: number, request: number, argument: Uint8Array) => number>(
    'int ioctl(int, unsigned long, void *)',
  ),
  ioctlNumber: typed<(fd: number, request: number, argument: number) => number>(
    'int ioctl(int, unsigned long, long)',
  ),
  eventfd: typed<(initial: number, flags: number) => number>('int eventfd(unsigned int, int)'),
  epollCreate: typed<(flags: number) => number>('int epoll_create1(int)'),
  epollCtl: typed<(epoll: number, operation: number, fd: number, event: Uint8Array) => number>(
    'int epoll_ctl(int, int, int, void *)',
  ),
  epollWait: typed<(epoll: number, events: Uint8Array, max: number, timeoutMs: number) => number>(
    'int epoll_wait(int, void *, int, int)',
  ),
  kill: typed<(pid: number, signal: number) => number>('int kill(int, int)'),
  getsid: typed<(pid: number) => number>('int getsid(int)'),
  waitid: typed<(kind: number, id: number, info: Uint8Array, options: number) => number>(
    'int waitid(int, unsigned int, void *, int)',
  ),
  waitpid: typed<(pid: number, status: Uint8Array, options: number) => number>(
    'int waitpid(int, void *, int)',
  ),
  prctl: typed<(option: number, a: number, b: number, c: number, d: number) => number>(
    'int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)',
  ),
  setfsuid: typed<(uid: number) => number>('int setfsuid(unsigned int)'),
  // By number, as the C library of a current long-term distribution may lack their names.
  syscall: typed<(number: number, a: number, b: number, c: number, d: number) => number>(
    'long syscall(long, long, long, long, long)',
  ),
};

const syscalls = { pidfdSendSignal: 424, pidfdOpen: 434, closeRange: 436 };

const EPERM = 1;
const ESRCH = 3;
const EINTR = 4;
const EIO = 5;
const ECHILD = 10;
const EAGAIN = 11;
const ENOSYS = 38;

/**
 * Reads into `into`. Returns the count, `wouldBlock`, or `hungUp` (EIO, or the end of a file);
 * repeats at EINTR; throws anything else.
 */
export function read(fd: number, into: Uint8Array): number {
  for (;;) {
    const count = call.read(fd, into, into.length);
    if (count > 0) {
      return count;
    }
    const errno = count === 0 ? EIO : koffi.errno();
    if (errno !== EINTR) {
      return noCount('read', errno);
    }
  }
}

/**
 * Writes from `from`. Returns the count, which may be short, `wouldBlock` or `hungUp` (EIO); repeats
 * at EINTR; throws anything else.
 */
export function write(fd: number, from: Uint8Array): number {
  for (;;) {
    const count = call.write(fd, from, from.length);
    if (count >= 0) {
      return count;
    }
    const errno = koffi.errno();
    if (errno !== EINTR) {
      return noCount('write', errno);
    }
  }
}

/** Closes. Errors are not reported: Linux has let the descriptor go whatever close(2) says. */
export function close(fd: number): void {
  call.close(fd);
}

/** A new eventfd: close-on-exec, non-blocking. Throws when there is no descriptor left. */
export function openEventfd(): number {
  return checked('eventfd', call.eventfd(0, O_CLOEXEC | O_NONBLOCK));
}

/** Makes an eventfd readable. EAGAIN (the counter is full) is as good as done. */
export function ring(eventfd: number): void {
  write(eventfd, eventfdOne);
}

/** Makes an eventfd unreadable until the next `ring`. */
export function silence(eventfd: number): void {
  read(eventfd, eventfdCount);
}

const O_CLOEXEC = 0o2000000;
const O_NONBLOCK = 0o4000;
const O_NOCTTY = 0o400;
const O_RDWR = 0o2;
const eventfdOne = new Uint8Array(new BigUint64Array([1n]).buffer);
const eventfdCount = new Uint8Array(8);

/** A new epoll set: close-on-exec. Throws when there is no descriptor left. */
export function openEpoll(): number {
  return checked('epoll_create1', call.epollCreate(O_CLOEXEC));
}

/** Adds, changes or removes (`wanted` is 0) what is waited for on `fd`. Throws any error: each is a mistake. */
export function watch(
  epoll: number,
  fd: number,
  change: { readonly from: number; readonly to: number; readonly tag: number },
): void {
  if (change.from === change.to) {
    return;
  }
  const operation =
    change.to === 0 ? EPOLL_CTL_DEL : change.from === 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  const event = new DataView(new ArrayBuffer(epollEventBytes));
  event.setUint32(0, change.to, true);
  event.setUint32(epollTagOffset, change.tag, true);
  checked('epoll_ctl', call.epollCtl(epoll, operation, fd, new Uint8Array(event.buffer)));
}

/** What `waitForEvents` fills: reused, so that a turn allocates nothing. */
export class EpollEvents {
  static readonly max = 128;
  readonly bytes = new Uint8Array(EpollEvents.max * epollEventBytes);
  readonly #view = new DataView(this.bytes.buffer);

  tag(index: number): number {
    return this.#view.getUint32(index * epollEventBytes + epollTagOffset, true);
  }

  events(index: number): number {
    return this.#view.getUint32(index * epollEventBytes, true);
  }
}

/** Waits without a deadline for something to happen. Returns how many events; 0 at EINTR. Throws any other error. */
export function waitForEvents(epoll: number, into: EpollEvents): number {
  const count = call.epollWait(epoll, into.bytes, EpollEvents.max, -1);
  if (count >= 0) {
    return count;
  }
  const errno = koffi.errno();
  if (errno === EINTR) {
    return 0;
  }
  throw new PosixFault('epoll_wait', errno);
}

const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLL_CTL_MOD = 3;

/** Marks one descriptor close-on-exec. Throws when it is none. */
export function setCloseOnExec(fd: number): void {
  checked('fcntl', call.fcntl(fd, F_SETFD, FD_CLOEXEC));
}

/**
 * Marks every descriptor from 3 on close-on-exec. Where the kernel does not know close_range(2), or a
 * sandbox forbids it, one after the other.
 */
export function setAllCloseOnExec(): void {
  if (call.syscall(syscalls.closeRange, 3, 0xffff_ffff, CLOSE_RANGE_CLOEXEC, 0) === 0) {
    return;
  }
  for (const name of readdirSync('/proc/self/fd')) {
    if (Number(name) > 2) {
      // The one that listed the folder is closed by now: EBADF is right for it.
      call.fcntl(Number(name), F_SETFD, FD_CLOEXEC);
    }
  }
}

const F_SETFD = 2;
const FD_CLOEXEC = 1;
const CLOSE_RANGE_CLOEXEC = 4;

/**
 * Opens the slave of a terminal by its master: no path is followed, it never becomes our controlling
 * terminal, and it is close-on-exec. Throws any error.
 */
export function openSlave(master: number): number {
  return checked(
    'ioctl TIOCGPTPEER',
    call.ioctlNumber(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC),
  );
}

/** Sets the size of a terminal, by its master. The same size again raises no signal. Throws any error. */
export function setWindowSize(master: number, rows: number, cols: number): void {
  const size = new Uint16Array([rows, cols, 0, 0]);
  checked('ioctl TIOCSWINSZ', call.ioctl(master, TIOCSWINSZ, new Uint8Array(size.buffer)));
}

/** Reads the size of a terminal, by its master. Throws any error. */
export function windowSize(master: number): { rows: number; cols: number } {
  const size = new Uint16Array(4);
  checked('ioctl TIOCGWINSZ', call.ioctl(master, TIOCGWINSZ, new Uint8Array(size.buffer)));
  return { rows: size[0] ?? 0, cols: size[1] ?? 0 };
}

const TIOCGWINSZ = 0x5413;
const TIOCSWINSZ = 0x5414;
const TIOCGPTPEER = 0x5441;

/** The session of a process, or undefined when there is no such process or it may not be asked. */
export function sessionOf(pid: number): number | undefined {
  const session = call.getsid(pid);
  return session < 0 ? undefined : session;
}

/**
 * Sends a signal to the very process that `isMeant` speaks of, never to another that was given its
 * id since. Returns whether it was sent; false when the process is gone (ESRCH) or is not meant.
 * Throws anything else, EPERM included.
 */
export function signalExactly(pid: number, signal: number, isMeant: () => boolean): boolean {
  const handle = call.syscall(syscalls.pidfdOpen, pid, 0, 0, 0);
  if (handle < 0) {
    const errno = koffi.errno();
    // An old kernel or a sandbox without the call: a moment remains in which the id could change hands.
    return errno === ENOSYS || errno === EPERM
      ? isMeant() && (call.kill(pid, signal) === 0 || gone('kill', koffi.errno()))
      : gone('pidfd_open', errno);
  }
  try {
    // Asked after the handle is held: whatever takes the id from now on is not behind the handle.
    if (!isMeant()) {
      return false;
    }
    const sent = call.syscall(syscalls.pidfdSendSignal, handle, signal, 0, 0);
    return sent === 0 || gone('pidfd_send_signal', koffi.errno());
  } finally {
    call.close(handle);
  }
}

function gone(name: string, errno: number): false {
  if (errno === ESRCH) {
    return false;
  }
  throw new PosixFault(name, errno);
}

/**
 * The id of a child that has ended and was not waited for, or undefined when there is none. The child
 * stays as it is, so that whoever started it can still ask for its status.
 */
export function endedChild(): number | undefined {
  const info = new Int32Array(32);
  const options = WEXITED | WNOHANG | WNOWAIT;
  if (call.waitid(P_ALL, 0, new Uint8Array(info.buffer), options) === 0) {
    return info[siginfoPidWord] || undefined;
  }
  const errno = koffi.errno();
  if (errno === ECHILD || errno === EINTR) {
    return undefined;
  }
  throw new PosixFault('waitid', errno);
}

/** Waits for one child that has ended. Nothing happens when somebody else was quicker (ECHILD). */
export function reap(pid: number): void {
  call.waitpid(pid, new Uint8Array(4), WNOHANG);
}

const P_ALL = 0;
const WNOHANG = 0x1;
const WEXITED = 0x4;
const WNOWAIT = 0x0100_0000;
/** Where `siginfo_t` has si_pid on 64-bit Linux: after signo, errno, code and padding. */
const siginfoPidWord = 4;

/** Makes this process the parent of every descendant that loses its own. Throws any error. */
export function becomeSubreaper(): void {
  checked('prctl PR_SET_CHILD_SUBREAPER', call.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
}

/**
 * Has the kernel send `signal` to this process when its parent dies. If the parent died meanwhile, this
 * process sends it to itself. Throws any other error.
 */
export function dieWithParent(signal: number): void {
  const parent = process.ppid;
  checked('prctl PR_SET_PDEATHSIG', call.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0));
  if (process.ppid !== parent) {
    process.kill(process.pid, signal);
  }
}

const PR_SET_PDEATHSIG = 1;
const PR_SET_CHILD_SUBREAPER = 36;

/**
 * Does something with the file rights of another user, on this thread only. A terminal that is made
 * meanwhile belongs to that user. errno says nothing: setfsuid(2) fails in silence without CAP_SETUID.
 */
export function withFileRightsOf<Result>(uid: number, act: () => Result): Result {
  const own = call.setfsuid(uid);
  try {
    return act();
  } finally {
    call.setfsuid(own);
  }
}

/** `struct epoll_event` is packed on x64 and nowhere else. */
const epollEventBytes = process.arch === 'x64' ? 12 : 16;
const epollTagOffset = process.arch === 'x64' ? 4 : 8;

function typed<Signature>(definition: string): Signature {
  return libc.func(definition) as Signature;
}

function noCount(name: string, errno: number): number {
  if (errno === EAGAIN) {
    return wouldBlock;
  }
  if (errno === EIO) {
    return hungUp;
  }
  throw new PosixFault(name, errno);
}

function checked(name: string, result: number): number {
  if (result < 0) {
    throw new PosixFault(name, koffi.errno());
  }
  return result;
}
