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
	t.Parallel()
	c := startCluster(t, 3)
	full, others := c.nodes[0], c.nodes[1:]
	client := c.connect(others...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	acked := map[string]string{}
	put := func(i int) {
		key, value := fmt.Sprint("key", i), fmt.Sprint(i)+noise(fmt.Sprint(i), 200<<10)
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
	checkFull(t, full)
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

// checkFull wants the last words of a member whose disk was full.
func checkFull(t *testing.T, n *node) {
	t.Helper()
	if status := n.cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("got status %d, want 1", status)
	}
	log := tail(n.log, 1<<20)
	if strings.Contains(log, "goroutine ") {
		t.Errorf("it ended in a stack trace:\n%s", log)
	}
	said := strings.TrimSpace(log)
	checkLine(t, said[strings.LastIndex(said, "\n")+1:]+"\n", []string{"file too large", "ulimit -f", "nothing is lost"})
}

// TestFastPath_fullDisk does that to a voter while it holds what others propose: what it said that it holds, it holds, and
// the four that are left decide as before.
func TestFastPath_fullDisk(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 5, farApart)
	full := e.others(e.leader())[0]
	load := startFastLoad(t)
	load.padding = 40 << 10
	for _, n := range e.others(full) {
		load.through(n)
	}
	load.await(winsAnEpoch/4, "before the disk is full")
	held := fastMetrics(t, full)["quorate_fast_records_total"]
	if held == 0 {
		t.Error("the member whose disk is to be full holds nothing for others")
	}
	limitFiles(t, full, 8<<20)
	select {
	case <-full.exited:
	case <-time.After(2 * fastPatience):
		t.Fatal("the member whose disk is full goes on")
	}
	checkFull(t, full)
	load.await(winsAnEpoch, "by the four others")
	e.launch(full, "existing")
	e.waitReady(full)
	load.through(full)
	load.await(winsAnEpoch/4, "with room again")
	load.check(e.nodes...)
	e.checkRecordsForgotten()
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
