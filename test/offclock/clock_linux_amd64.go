package offclock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/test/interpose"
)

// Clock is that of the programs that it started. The zero Clock is right.
type Clock struct {
	off   atomic.Int64 // time.Duration
	looks atomic.Int64

	mu     sync.Mutex
	failed error
}

// Set sets how much later, or earlier, than it is the clock says it is.
func (c *Clock) Set(off time.Duration) { c.off.Store(int64(off)) }

// Looks is how often programs have looked at the clock.
func (c *Clock) Looks() int64 { return c.looks.Load() }

// Err is why a program was left with the clock of the machine, if one was.
func (c *Clock) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *Clock) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
}

// Start starts a command, as its own Start does, with this clock. The error is interpose.ErrNoListener where the system allows
// none.
func (c *Clock) Start(command *exec.Cmd) error {
	calls := []interpose.Call{{Number: unix.SYS_ARCH_PRCTL, First: -1},
		{Number: unix.SYS_CLOCK_GETTIME, First: unix.CLOCK_REALTIME}}
	return interpose.Start(command, calls, func(a *interpose.Asked) {
		if a.Number == unix.SYS_CLOCK_GETTIME {
			c.tell(a)
			return
		}
		if err := hideVDSO(a.Thread); err != nil {
			c.fail(err)
		}
		a.GoOn()
	})
}

// tell answers what time it is.
func (c *Clock) tell(a *interpose.Asked) {
	c.looks.Add(1)
	now := time.Now().Add(time.Duration(c.off.Load()))
	var told [16]byte // struct timespec
	binary.LittleEndian.PutUint64(told[:8], uint64(now.Unix()))
	binary.LittleEndian.PutUint64(told[8:], uint64(now.Nanosecond()))
	if err := write(a.Thread, a.Arguments[1], told[:]); err != nil {
		c.fail(err)
		a.GoOn()
		return
	}
	a.Return(0, 0)
}

const (
	vdso   = 33 // AT_SYSINFO_EHDR of linux/auxvec.h
	ignore = 1  // AT_IGNORE
)

// hideVDSO takes the vDSO out of the auxiliary vector of a program that has not read it.
func hideVDSO(thread int) error {
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", thread)) // a copy: the program has its own on its stack
	if err != nil {
		return err
	}
	var entry []byte
	for at := 0; at+16 <= len(vector); at += 16 {
		if binary.LittleEndian.Uint64(vector[at:]) == vdso {
			entry = vector[at : at+16]
		}
	}
	if entry == nil {
		return nil // the kernel has none
	}
	from, stack, err := readStack(thread)
	if err != nil {
		return err
	}
	at := bytes.Index(stack, entry)
	if at < 0 {
		return fmt.Errorf("offclock: the auxiliary vector of %d is not on its stack", thread)
	}
	var none [8]byte
	binary.LittleEndian.PutUint64(none[:], ignore)
	return write(thread, from+uint64(at), none[:])
}

// readStack reads the stack of the first thread of a program.
func readStack(thread int) (from uint64, stack []byte, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", thread))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "[stack]") {
			continue
		}
		var to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, nil, err
		}
		stack = make([]byte, to-from)
		local := []unix.Iovec{{Base: &stack[0], Len: uint64(len(stack))}}
		n, err := unix.ProcessVMReadv(thread, local, []unix.RemoteIovec{{Base: uintptr(from), Len: len(stack)}}, 0)
		return from, stack[:max(n, 0)], err
	}
	return 0, nil, fmt.Errorf("offclock: %d has no stack", thread)
}

func write(thread int, at uint64, content []byte) error {
	local := []unix.Iovec{{Base: &content[0], Len: uint64(len(content))}}
	_, err := unix.ProcessVMWritev(thread, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(content)}}, 0)
	return err
}
