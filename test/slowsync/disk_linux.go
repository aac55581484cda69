package slowsync

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Disk holds up the syncs of the programs that it started. The zero Disk holds none up and counts them.
type Disk struct {
	delay atomic.Int64 // time.Duration
	syncs atomic.Int64
}

// Delay sets how much longer each sync takes that begins from now on.
func (d *Disk) Delay(each time.Duration) { d.delay.Store(int64(each)) }

// Syncs is how many have begun.
func (d *Disk) Syncs() int64 { return d.syncs.Load() }

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

// serve answers what the kernel asks until no process with the filter is left.
func (d *Disk) serve(listener int) {
	defer unix.Close(listener)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			return // hung up: all have ended
		}
		var asked notification // the kernel wants zeros
		if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err != nil {
			continue // that thread was killed meanwhile
		}
		d.syncs.Add(1)
		goOn := func() {
			reply := answer{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&reply)) // fails if the thread was killed
		}
		if delay := time.Duration(d.delay.Load()); delay > 0 {
			time.AfterFunc(delay, goOn)
		} else {
			goOn()
		}
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
