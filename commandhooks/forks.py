# What a Python does that is forked for each job of its hook. The process that
# was started is the server. It has no rights but to make namespaces, reads the
# socket that it has as descriptor 3, and nothing of any job.
#
# With each byte on it come four descriptors: what the job has as standard input,
# output and error, and a socket to the gate. The server clones itself into
# namespaces of its own, user and process ids included: that clone is process 1 of
# the job. It mounts what the job is to have to itself, drops its rights, tells the
# gate, waits for its word, and forks again. That is the job's own process, which
# loads the system call filter and goes on to the script.
#
# The gate puts before this what it knows, in capitals.


def wait():
    """Returns in a process that is to run the script; the others end in here."""
    known = set(sys.modules)
    import _signal
    import _socket
    import ctypes
    import fcntl
    import gc
    import struct
    from os import waitstatus_to_exitcode  # an older Python ends here, before any job

    libc = ctypes.PyDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    nosuid, nodev, noexec, readonly, remount, bind = 2, 4, 8, 1, 32, 4096

    def call(name, *args):
        result = getattr(libc, name)(*args)
        if result == -1:
            raise OSError(ctypes.get_errno(), name)
        return result

    def words(*args):
        return [ctypes.c_ulong(arg) for arg in args]

    def mount(path, kind, flags, options=None):
        call("mount", kind, path, kind, ctypes.c_ulong(flags), options)

    def put(path, text):
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, text)
        os.close(fd)

    def confine():
        # The kernel wants to see a writable /proc where a new one is mounted,
        # and the maps are written through one.
        mount(b"/proc", b"proc", nosuid | nodev | noexec)
        put("/proc/self/setgroups", b"deny")
        put("/proc/self/uid_map", b"%d %d 1" % (ID, ID))
        put("/proc/self/gid_map", b"%d %d 1" % (ID, ID))
        mount(b"/proc", None, remount | bind | readonly | nosuid | nodev | noexec)
        mount(b"/dev/shm", b"tmpfs", nosuid | nodev, b"mode=1777,size=%d" % SHM_SIZE)
        mount(b"/tmp", b"tmpfs", nosuid | nodev, b"mode=1777,size=%d" % TEMP_SIZE)
        os.chdir(DIRECTORY)
        if LOOPBACK:
            set_flags, up = 0x8914, 0x1
            any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
            fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up))
            any_socket.close()
        drop, capability = 24, 0
        while libc.prctl(drop, *words(capability, 0, 0, 0)) == 0:  # until there is none of this number
            capability += 1
        version = 0x20080522
        call("capset", struct.pack("Ii", version, 0), bytes(24))

    def reap(child):
        """Waits for the job's own process, and answers its exit code as bwrap has it."""
        while True:
            pid, status = os.wait()
            if pid == child:
                code = waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def job(stdio, gate):
        """Runs in process 1 of the job, and returns in its own process."""
        dumpable, seccomp, by_filter = 4, 22, 2
        interrupt = _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # process 1 heeds no signal
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        os.setsid()
        for number, fd in enumerate(stdio):
            os.dup2(fd, number)
            os.close(fd)
        confine()
        call("prctl", dumpable, *words(0, 0, 0, 0))  # the job cannot look into this process
        memory = [os.open(path, os.O_PATH) for path in ("/tmp", "/dev/shm")]
        gate.sendmsg([b"\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("2i", *memory))])
        for fd in memory:
            os.close(fd)
        if gate.recv(1) != b"\n":
            os._exit(125)
        child = os.fork()
        if child:
            gate.send(b'{"exit-code": %d}\n' % reap(child))
            os._exit(0)
        gate.close()
        call("prctl", dumpable, *words(1, 0, 0, 0))
        _signal.signal(_signal.SIGINT, interrupt)
        program = ctypes.create_string_buffer(FILTER, len(FILTER))
        rules = struct.pack("HP", len(FILTER) // 8, ctypes.addressof(program))
        call("prctl", seccomp, ctypes.c_ulong(by_filter), rules, *words(0, 0))

    def serve():
        if len(os.listdir("/proc/self/task")) > 1:
            return False  # of several threads a fork leaves one, and the locks of the others
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # nobody waits for a job in here
        server = _socket.socket(fileno=3)
        gc.freeze()  # else each job looks through all that is there already when it ends
        os.write(1, b"\n")
        while True:
            word, passed, _, _ = server.recvmsg(1, _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC)
            if not word:
                return False  # the gate has died, or needs no more of them
            fds = struct.unpack("4i", passed[0][2])
            if call("syscall", *words(CLONE, NAMESPACES | _signal.SIGCHLD, 0, 0, 0, 0)) == 0:
                server.close()
                job(fds[:3], _socket.socket(fileno=fds[3]))
                return True
            for fd in fds:
                os.close(fd)

    for name in set(sys.modules) - known:
        del sys.modules[name]
    goes_on = False
    try:
        goes_on = serve()
    finally:
        if not goes_on:
            os._exit(125)


