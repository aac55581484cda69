package process_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecover_compareLogElsewhere compares survivors whose logs lie in a --wal-dir: the one that holds an acknowledged write is read,
// and no text leads past it.
func TestRecover_compareLogElsewhere(t *testing.T) {
	t.Parallel()
	e := planVoters(t, 3)
	wal := func(n *node) string { return filepath.Join(e.dir, "log-of-"+n.name) }
	for _, n := range e.nodes {
		n.flags = []string{"--wal-dir=" + wal(n)}
	}
	e.found()
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	one.kill()
	e.write(two, "acknowledged without m1")
	two.kill()
	three.kill()
	if err := os.RemoveAll(three.dir); err != nil {
		t.Fatal(err)
	}
	recover := func(n *node, more ...string) []string {
		return append([]string{"recover", "--data-dir", n.dir, "--wal-dir", wal(n)}, more...)
	}
	place := func(n *node) string { return n.dir + "," + wal(n) }
	const keep = "it may hold acknowledged writes that the others lack"
	e.quorate(1, recover(one, "--compare", two.dir, "--members-are-lost", "m3"), "--compare "+two.dir+",WAL-DIR", keep)
	e.quorate(1, recover(one, "--compare", two.dir+","+e.dir, "--members-are-lost", "m3"), e.dir+" holds no log: correct "+
		"it", keep)
	e.quorate(1, recover(one, "--compare", two.dir+","+wal(one), "--members-are-lost", "m3"), "do not belong together")
	e.quorate(2, recover(one, "--compare", two.dir+","+one.dir, "--members-are-lost", "m3"), one.dir+" is a data directory, "+
		"and no log")
	e.quorate(1, []string{"recover", "--data-dir", two.dir}, "give --wal-dir", keep)
	e.quorate(1, recover(one, "--yes", "--compare", place(two), "--members-are-lost", "m3"), "are a quorum: start them")
	e.quorate(1, recover(one, "--yes", "--compare", place(two), "--members-are-lost", "m2,m3"), "m2 is more advanced")
	e.quorate(1, recover(two, "--compare", place(one), "--members-are-lost", "m1"),
		"quorate recover --data-dir "+two.dir+" --wal-dir "+wal(two)+" --compare "+place(one)+" --members-are-lost m1,m3\n")
	e.quorate(0, recover(two, "--yes", "--compare", place(one), "--members-are-lost", "m1,m3"), "m2 is recovered")

	e.gone, e.nodes = []*node{one, three}, []*node{two}
	e.launch(two, "new")
	e.waitReady(two)
	e.checkKeys(two, map[string]string{"load/acked": "acknowledged without m1"})
}
