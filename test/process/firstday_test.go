package process_test

import (
	"path/filepath"
	"testing"
)

// TestFirstDay does what an operator tries on the first day, and wants the answers of the documents: a backup tells its revision,
// a flag may precede the command, and a member that is started with another zone is in that one.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 1)
	n := e.nodes[0]
	endpoint := "--endpoints=" + n.client
	e.quorate(0, []string{"--timeout=20s", endpoint, "put", "a", "1"}, "OK")
	e.quorate(0, []string{"snapshot", "save", filepath.Join(t.TempDir(), "backup.db"), "-o", "json", endpoint}, `"revision":2,`)
	for _, zone := range []string{"north", "south"} {
		n.kill()
		n.flags = []string{"--zone=" + zone}
		e.launch(n, "existing")
		e.waitReady(n)
		e.quorate(0, e.member("list"), zone)
	}
}
