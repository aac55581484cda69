package interpose

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Asked is a call that waits. Exactly one of GoOn and Return must be called.
type Asked struct {
	Thread    int // the id of the thread that calls
	Number    int
	Arguments [6]uint64

	listener int
	id       uint64
}

// GoOn lets the kernel do the call.
func (a *Asked) GoOn() { a.end(&answer{id: a.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}) }

// Return ends the call without the kernel: with a value, or with an error if that is not zero.
func (a *Asked) Return(value int64, failed unix.Errno) {
	a.end(&answer{id: a.id, value: value, errno: -int32(failed)})
}

func (a *Asked) end(with *answer) {
	_ = control(a.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(with)) // fails if the thread was killed
}

// notification is what the kernel tells of a call: struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id        uint64
	pid       uint32
	flags     uint32
	number    int32
	arch      uint32
	at        uint64
	arguments [6]uint64
}

// answer lets a call go on or end: struct seccomp_notif_resp of linux/seccomp.h.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve tells what the kernel asks until no process with the filter is left.
func serve(listener int, asked func(*Asked)) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			return // hung up: all have ended
		}
		var n notification // the kernel wants zeros
		if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // that thread was killed meanwhile
		}
		asked(&Asked{Thread: int(n.pid), Number: int(n.number), Arguments: n.arguments, listener: listener, id: n.id})
	}
}

func control(file int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, uintptr(argument))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		default:
			return errno
		}
	}
}
