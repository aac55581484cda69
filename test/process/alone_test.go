package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAlone starts members with an empty directory and the flags of a unit that need no list of members any more: no cluster of one
// is founded where others can reach the member, or where a restore has failed.
func TestAlone(t *testing.T) {
	t.Parallel()
	e := planVoters(t, 1)
	n := e.nodes[0]
	unit := func(advertised string) []string {
		return []string{"--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
			"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer,
			"--initial-advertise-peer-urls=" + advertised}
	}
	const elsewhere = "http://10.0.0.9:2380"
	e.quorate(1, unit(elsewhere), "--data-dir "+n.dir+" is empty, and no flag says of which cluster this member is",
		"--initial-cluster m1="+elsewhere+" alone makes a cluster of one")
	if _, err := os.Stat(filepath.Join(n.dir, "member")); err == nil {
		t.Error("a start that was refused has made a member's data")
	}

	local := unit("http://" + n.peer)
	restore := []string{"snapshot", "restore", filepath.Join(e.dir, "none.db"), "--data-dir=" + n.dir, "--name=" + n.name}
	e.quorate(1, restore, "no such file")
	e.quorate(1, local, "a restore into this directory was interrupted, or has failed", "member.partial")
	e.quorate(1, restore, "no such file")
	if err := os.Remove(filepath.Join(n.dir, "member.partial")); err != nil {
		t.Fatal(err)
	}
	e.run(n, local...)
	e.waitReady(n)
	e.quorate(0, []string{"status", "--endpoints=" + strings.TrimPrefix(n.client, "http://")}, "leader")
}
