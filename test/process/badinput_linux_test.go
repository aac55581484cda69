package process_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestBadInput_fullDisk lets a member's files grow no more while it runs, as on a full disk: it stops with its reason,
// the others go on, and with room again it has everything that was acknowledged.
func TestBadInput_fullDisk(t *testing.T) {
	c := startCluster(t, 3)
	full, others := c.nodes[0], c.nodes[1:]
	client := c.connect(others...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	acked := map[string]string{}
	put := func(i int) {
		key, value := fmt.Sprint("key", i), fmt.Sprint(i)+strings.Repeat("f", 200<<10)
		if _, err := client.Put(ctx, key, value); err == nil { // a lost answer promises nothing
			acked[key] = value
		}
	}
	limitFiles(t, full, 2<<20)
	for i := 0; ; i++ {
		select {
		case <-full.exited:
		case <-ctx.Done():
			t.Fatal("the member whose disk is full goes on")
		default:
			put(i)
			continue
		}
		break
	}
	if status := full.cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("got status %d, want 1", status)
	}
	log := tail(full.log, 1<<20)
	if strings.Contains(log, "goroutine ") {
		t.Errorf("it ended in a stack trace:\n%s", log)
	}
	said := strings.TrimSpace(log)
	checkLine(t, said[strings.LastIndex(said, "\n")+1:]+"\n", []string{"file too large", "ulimit -f", "nothing is lost"})
	for i := range 5 {
		put(1000 + i)
		if acked[fmt.Sprint("key", 1000+i)] == "" {
			t.Errorf("put %d failed at the others", i)
		}
	}
	c.start(full)
	c.waitReady(full)
	own := c.connect(full)
	defer own.Close()
	for key, value := range acked {
		got, err := own.Get(ctx, key)
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
			t.Errorf("%s was acknowledged and is gone or different: %v", key, err)
		}
	}
	if len(acked) < 10 {
		t.Errorf("only %d writes were acknowledged", len(acked))
	}
}

// limitFiles bounds the size of the files that n's process may write from now on. The server sees an error, as from a
// disk that is full.
func limitFiles(t *testing.T, n *node, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: 1 << 40}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(n.cmd.Process.Pid), syscall.RLIMIT_FSIZE,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
}
