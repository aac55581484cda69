package interpose

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	launcherName = "interpose-launch" // what this executable is called when it sets the filter
	launcherFile = 3                  // the launcher's end of the socket to Start
)

// ErrNoListener is of a kernel, or a container, that allows no seccomp listener.
var ErrNoListener = errors.New("interpose: this kernel or container allows no seccomp listener")

// Call is a system call that waits for an answer. The number is that of the architecture that this is compiled for; a program
// of another one is not held up.
type Call struct {
	Number uint32
	// First is the first argument of those that wait; -1: all do. Only its lower 32 bits count.
	First int64
}

// Main returns, unless this process was started by Start: then it becomes the program, or exits with 1.
func Main() {
	if os.Args[0] != launcherName {
		return
	}
	fmt.Fprintln(os.Stderr, "interpose:", launch(os.Args[1], os.Args[2], os.Args[3:]))
	os.Exit(1)
}

// launch sets the filter, sends its listener to Start and becomes the program. It returns only if that fails.
func launch(calls, path string, arguments []string) error {
	runtime.LockOSThread() // the filter is the thread's, and the program takes it over from the thread that calls exec
	wanted, err := decode(calls)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	listener, err := setFilter(wanted)
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

func encode(calls []Call) string {
	var words []string
	for _, c := range calls {
		words = append(words, fmt.Sprintf("%d:%d", c.Number, c.First))
	}
	return strings.Join(words, ",")
}

func decode(text string) (calls []Call, err error) {
	for word := range strings.SplitSeq(text, ",") {
		number, first, _ := strings.Cut(word, ":")
		n, err1 := strconv.ParseUint(number, 10, 32)
		f, err2 := strconv.ParseInt(first, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		calls = append(calls, Call{uint32(n), f})
	}
	return calls, nil
}

// setFilter lets the kernel ask for each call, and returns the file through which it asks.
func setFilter(calls []Call) (listener int, err error) {
	const number, argument = 0, 16 // where they are in struct seccomp_data of linux/seccomp.h
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(to uint32, else_ uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: else_, K: to}
	}
	ask := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := []unix.SockFilter{load(number)}
	for _, c := range calls {
		if c.First < 0 {
			program = append(program, equal(c.Number, 1), ask)
		} else {
			program = append(program, equal(c.Number, 4), load(argument), equal(uint32(c.First), 1), ask, allow)
		}
	}
	program = append(program, allow)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// Start starts a command, as its own Start does. Of each of the calls that it makes asked is told, which answers it, itself or
// later, and waits for nothing. The error is ErrNoListener where there can be none.
func Start(command *exec.Cmd, calls []Call, asked func(*Asked)) error {
	if command.Err != nil {
		return command.Err
	}
	if len(command.ExtraFiles) > 0 {
		return errors.New("interpose: the command has extra files")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "caller"), os.NewFile(uintptr(pair[1]), "launcher")
	defer ours.Close()
	command.Args = append([]string{launcherName, encode(calls), command.Path}, command.Args[1:]...)
	command.Path = "/proc/self/exe"
	command.ExtraFiles = []*os.File{theirs}
	err = command.Start()
	_ = theirs.Close() // the child has its own
	if err != nil {
		return err
	}
	listener, err := receive(pair[0])
	if err != nil {
		return errors.Join(err, command.Process.Kill())
	}
	go serve(listener, asked)
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
		return 0, ErrNoListener
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return files[0], nil
}
