//go:build unix

package process_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestRollback_snapshotOfRunningMember puts back a snapshot of the disk that was taken while its member ran, as of a virtual machine.
// No member that could know that is up, so acknowledged writes are missing. The member that has them says so once it is back,
// in its log and for as long as it is so, and nothing that it says leads to the loss of its directory.
func TestRollback_snapshotOfRunningMember(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	three.kill()
	e.write(one, "before")
	signal := func(s syscall.Signal) {
		if err := one.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := one.dir + ".snapshot"
	signal(syscall.SIGSTOP)
	copyTree(t, one.dir, snapshot)
	signal(syscall.SIGCONT)
	for i := range 6 {
		e.write(two, fmt.Sprint("acknowledged ", i))
	}
	one.kill()
	two.kill()
	if err := os.RemoveAll(one.dir); err != nil {
		t.Fatal(err)
	}
	copyTree(t, snapshot, one.dir)
	e.launch(one, "new")
	e.launch(three, "new")
	e.waitReady(one)
	for i := range 10 {
		e.write(one, fmt.Sprint("after ", i))
	}
	e.launch(two, "new")
	const says = "m2 may have the only copy. Empty, reset and remove no member"
	e.waitLog(two, says)
	e.awaitSaid(1, []string{"status", "--endpoints=" + one.client}, says, "m2 reports: ")
	e.awaitSaid(0, []string{"member", "list", "--endpoints=" + two.client}, "alarm: ", says)
}
