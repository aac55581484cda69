package slowsync

import (
	"os/exec"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/test/interpose"
)

// Disk holds up the syncs of the programs that it started. The zero Disk holds none up and counts them.
type Disk struct {
	delay atomic.Int64 // time.Duration
	syncs atomic.Int64
	fails atomic.Int64 // unix.Errno
}

// Main returns, unless this process was started by Start: then it becomes the program, or exits with 1.
func Main() { interpose.Main() }

// Delay sets how much longer each sync takes that begins from now on.
func (d *Disk) Delay(each time.Duration) { d.delay.Store(int64(each)) }

// Fail makes each sync that begins from now on end with an error: EROFS is that of a disk that the kernel has made read-only,
// EIO of one that is broken. Zero: they succeed.
func (d *Disk) Fail(with unix.Errno) { d.fails.Store(int64(with)) }

// Syncs is how many have begun.
func (d *Disk) Syncs() int64 { return d.syncs.Load() }

// Start starts a command, as its own Start does, with its syncs under the disk. A Disk may have several programs. The error is
// interpose.ErrNoListener where the system allows none.
func (d *Disk) Start(command *exec.Cmd) error {
	var calls []interpose.Call
	for _, number := range []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS, unix.SYS_SYNC_FILE_RANGE} {
		calls = append(calls, interpose.Call{Number: number, First: -1})
	}
	return interpose.Start(command, calls, func(a *interpose.Asked) {
		d.syncs.Add(1)
		if with := unix.Errno(d.fails.Load()); with != 0 {
			a.Return(0, with)
			return
		}
		if delay := time.Duration(d.delay.Load()); delay > 0 {
			time.AfterFunc(delay, a.GoOn)
		} else {
			a.GoOn()
		}
	})
}
