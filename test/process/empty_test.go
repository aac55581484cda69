package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
)

// ghost is a process with the flags of a member, at its URLs, and an empty directory.
func (e *elastic) ghost(of *node) *node {
	e.t.Helper()
	n := &node{
		name: of.name, client: of.client, peer: of.peer, dir: filepath.Join(e.dir, "ghost"), log: filepath.Join(e.dir, "ghost.log"),
	}
	e.gone = append(e.gone, n)
	e.launch(n, "new")
	return n
}

// TestEmpty_movedMember moves a follower to another machine, while its unit starts on the old one with an empty directory: the
// member is found where it is, the process without data is named, and no operator is told to reset the member.
func TestEmpty_movedMember(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	moved := e.others(e.leader())[0]
	moved.kill()
	ghost := e.ghost(moved)
	e.waitLog(ghost, "has lost its disk")
	if log := tail(ghost.log, 1<<20); !strings.Contains(log, "If "+moved.name+" was moved and has its data elsewhere, stop this process") {
		t.Error("the process without data does not ask whether its member was moved")
	}
	moved.peer, moved.client = testnet.Address(t), "http://"+testnet.Address(t)
	e.launch(moved, "existing")
	e.waitReady(moved)
	e.use()
	e.checkVoters()
	e.waitLog(ghost, "is not "+moved.name+": "+moved.name+" runs with its data at http://"+moved.peer)
	from := logSize(ghost)
	found := "a process without data, which was started as " + moved.name + ", runs at http://" + ghost.peer +
		" (stop its unit on host 127.0.0.1)"
	listed := func() bool {
		return strings.Contains(e.quorate(0, e.member("list"), "tolerates 1 more failure"), found)
	}
	until(t, "member list names the process without data", func(context.Context) bool { return listed() })
	e.quorate(1, []string{"status", "--endpoints=" + moved.client}, found)
	e.quorate(1, e.member("reset", moved.name, "--yes"), moved.name+" is up and has its disk: there is nothing to reset")
	if log := tail(ghost.log, int(logSize(ghost)-from)); strings.Contains(log, "member reset") {
		t.Errorf("the member runs, and is to be reset: %s", log)
	}
	ghost.kill()
	until(t, "member list names nobody", func(context.Context) bool { return !listed() })
}

// TestEmpty_majority loses the disks of two of three members, which start again with empty directories: status says what is left,
// and the processes without data count as voters nowhere.
func TestEmpty_majority(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	acked := e.fill(three)
	for _, n := range e.nodes {
		n.kill()
	}
	e.wipe(one)
	e.wipe(two)
	for _, n := range e.nodes {
		e.launch(n, "new")
	}
	e.waitLog(one, "has lost its disk")
	e.waitLog(two, "has lost its disk")
	e.quorate(1, []string{"status", "--endpoints=" + three.client}, "m1 and m2 run without their data and do not vote",
		"`quorate recover --data-dir ITS-DIR --members-are-lost m1,m2` on a stopped survivor")
	three.kill()
	found := "a process without data, which was started as m1, runs at http://" + one.peer
	e.quorate(1, forced(three), found, "nothing was changed, and the flag still counts")

	copied := filepath.Join(e.dir, "copied")
	if err := os.CopyFS(copied, os.DirFS(three.dir)); err != nil {
		t.Fatal(err)
	}
	e.quorate(1, []string{"recover", "--data-dir", copied, "--yes"}, "m1 is not there: "+found, "--members-are-lost m1,m2\n")
	e.quorate(0, []string{"recover", "--data-dir", copied, "--yes", "--members-are-lost", "m1,m2"},
		"m1 is lost, as you say; "+found, "m3 is recovered")

	one.kill()
	e.quorate(1, forced(three), "was started as m2, runs at http://"+two.peer, "the flag still counts")
	two.kill()
	e.gone, e.nodes = e.nodes[:2], []*node{three}
	e.use()
	e.run(three, forced(three)...)
	e.waitReady(three)
	e.checkKeys(three, acked)
}
