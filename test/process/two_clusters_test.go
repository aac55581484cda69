package process_test

import (
	"os"
	"testing"
)

// TestStatus_twoClustersOfOneID starts a founder that was replaced once more, with the flags of its founding and an empty directory:
// it founds another cluster under the same id. No member can tell it, but what it said as it was removed, and `quorate
// status`.
func TestStatus_twoClustersOfOneID(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 1)
	founder := e.nodes[0]
	e.write(founder, "acknowledged")
	heir := e.grow("m2")
	e.shrink(founder)
	e.waitLog(founder, "Take --initial-cluster out of its flags now")
	if err := os.RemoveAll(founder.dir); err != nil {
		t.Fatal(err)
	}
	e.gone, e.nodes = nil, []*node{founder}
	e.launch(founder, "new")
	e.waitReady(founder)
	e.nodes = []*node{founder, heir}
	e.quorate(1, []string{"status", "--endpoints=" + founder.client + "," + heir.client}, "TWO CLUSTERS: ", "two clusters "+
		"have one id",
		" at "+founder.client[len("http://"):], " at "+heir.client[len("http://"):])
	e.quorate(0, []string{"status", "--endpoints=" + heir.client})
}
