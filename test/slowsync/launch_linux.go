package slowsync

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	launcherName = "slowsync-launch" // what this executable is called when it sets the filter
	launcherFile = 3                 // the launcher's end of the socket to its Disk
)

// Main returns, unless this process was started by Start: then it becomes the program, or exits with 1.
func Main() {
	if os.Args[0] != launcherName {
		return
	}
	fmt.Fprintln(os.Stderr, "slowsync:", launch(os.Args[1], os.Args[2:]))
	os.Exit(1)
}

// launch sets the filter, sends its listener to the Disk and becomes the program. It returns only if that fails.
func launch(path string, arguments []string) error {
	runtime.LockOSThread() // the filter is the thread's, and the program takes it over from the thread that calls exec
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	listener, err := setFilter()
	if err != nil {
		return fmt.Errorf("seccomp filter: %w", err)
	}
	if err := unix.Sendmsg(launcherFile, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	for _, open := range []int{listener, launcherFile} {
		if err := unix.Close(open); err != nil {
			return err
		}
	}
	return unix.Exec(path, append([]string{path}, arguments...), os.Environ())
}

// setFilter lets the kernel ask for each sync, and returns the file through which it asks. The numbers are those of the
// architecture that this is compiled for; a program of another one is not held up.
func setFilter() (listener int, err error) {
	syncs := []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS, unix.SYS_SYNC_FILE_RANGE}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number of the call
	for i, number := range syncs {
		toNotify := uint8(len(syncs) - i) // past the other comparisons and the return that allows
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: toNotify, K: number})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// Start starts a command, as its own Start does, with its syncs under the disk. A Disk may have several programs.
func (d *Disk) Start(command *exec.Cmd) error {
	if command.Err != nil {
		return command.Err
	}
	if len(command.ExtraFiles) > 0 {
		return errors.New("slowsync: the command has extra files")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "disk"), os.NewFile(uintptr(pair[1]), "launcher")
	defer ours.Close()
	command.Args = append([]string{launcherName, command.Path}, command.Args[1:]...)
	command.Path = "/proc/self/exe"
	command.ExtraFiles = []*os.File{theirs}
	err = command.Start()
	_ = theirs.Close() // the child has its own
	if err != nil {
		return err
	}
	listener, err := receive(pair[0])
	if err != nil {
		return errors.Join(fmt.Errorf("slowsync: no listener: %w", err), command.Process.Kill())
	}
	go d.serve(listener)
	return nil
}

// receive takes the listener from the launcher, or fails once that has ended.
func receive(socket int) (listener int, err error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return 0, err
	}
	if len(messages) != 1 {
		return 0, errors.New("the launcher failed")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return files[0], nil
}
