package process_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDisk_lost lets a member lose its disk and starts it again with an empty directory, by its unchanged unit, whatever that says.
// The process says what to do, the cluster hears of it, `member reset` works as is said, and the process goes on by itself.
func TestDisk_lost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		unit func(e *elastic, n *node)
	}{
		{"existing", func(e *elastic, n *node) { e.launch(n, "existing") }},
		{"existing, with the members of long ago", func(e *elastic, n *node) {
			all := e.nodes
			e.nodes = slices.DeleteFunc(slices.Clone(all), func(other *node) bool { return other == e.leader() })
			e.launch(n, "existing")
			e.nodes = all
		}},
		{"join", func(e *elastic, n *node) { e.run(n, e.joining(n, "http://"+e.nodes[0].peer)...) }},
		{"join in its own place", func(e *elastic, n *node) {
			e.run(n, e.joining(n, "http://"+e.nodes[0].peer, "--replaces="+n.name)...)
		}},
		{"join in place of one that is long gone", func(e *elastic, n *node) {
			e.run(n, e.joining(n, "http://"+e.nodes[0].peer, "--replaces=m9")...)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := startTrio(t)
			acked := e.fill(e.nodes[0])
			n := e.nodes[2]
			e.loseDisk(n, func() { row.unit(e, n) }) // TestDisk_lostByEach loses disks of members with other ids
			e.checkKeys(n, acked)
			n.kill()
			row.unit(e, n)
			e.waitReady(n)
		})
	}
}

// TestDisk_lostByEach lets each founder lose its disk, one after the other, twice, and resets it. All units stay as they are. The last
// one finds no process with an id of the founding.
func TestDisk_lostByEach(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	acked := e.fill(e.nodes[0])
	for range 2 {
		for _, n := range e.nodes {
			e.loseDisk(n, func() { e.launch(n, "new") })
			e.checkKeys(n, acked)
		}
	}
	for _, n := range e.nodes {
		n.kill()
	}
	two := e.nodes[1]
	e.wipe(two)
	for _, n := range e.nodes {
		e.launch(n, "new")
	}
	e.waitLog(two, "has lost its disk")
	e.waitReady(e.nodes[0])
	e.checkKeys(e.nodes[2], acked)
}

// loseDisk takes the disk of a voter away, starts its unit, and does what the process says.
func (e *elastic) loseDisk(n *node, start func()) {
	e.t.Helper()
	other := e.others(n)[0]
	ask := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, e.binary, append(args, "--endpoints="+other.client)...).CombinedOutput()
		return string(out), err
	}
	n.kill()
	e.wipe(n)
	from := logSize(n)
	start()
	e.awaitLog(n, from, "has lost its disk")
	e.awaitLog(n, from, "`quorate member reset "+n.name+"` from any member that serves, and this process goes on by itself")
	until(e.t, "the cluster hears that "+n.name+" has lost its disk", func(context.Context) bool {
		out, err := ask("member", "list")
		return err == nil && strings.Contains(out, "lost its disk")
	})
	n.kill() // a supervisor starts it again: that is not an operator's word
	from = logSize(n)
	start()
	e.awaitLog(n, from, "has lost its disk")
	e.reset(n, other)
	e.waitReady(n)
	until(e.t, n.name+" votes again", func(context.Context) bool {
		out, err := ask("member", "list")
		return err == nil && strings.Count(out, "voter") >= 3 && strings.Contains(out, "tolerates 1 more failure")
	})
}

// TestDisk_notLost starts a newcomer whose peer URL is that of a member that runs, and nothing is taken from that one.
func TestDisk_notLost(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	two := e.nodes[1]
	until(t, "all have told their names", func(context.Context) bool { return len(e.members(3)) == 3 })
	for _, more := range [][]string{nil, {"--replaces=" + e.nodes[2].name}, {"--replaces=" + two.name}} {
		n := e.node("m9")
		args := append(e.joining(n, "http://"+e.nodes[0].peer, more...), "--initial-advertise-peer-urls=http://"+two.peer)
		out := e.quorate(1, args, "http://"+two.peer+" is probably mistyped", "member m2 (", "runs with its data")
		if strings.Contains(out, "`quorate member remove") || strings.Contains(out, "--replaces=m9") {
			t.Errorf("it advises to take something from a member that runs:\n%s", out)
		}
	}
	if names := e.members(3); !slices.Contains(names, "m2") {
		t.Errorf("the members are %v", names)
	}
}
