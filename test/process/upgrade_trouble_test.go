package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestUpgrade_inTrouble follows docs/upgrade.md in a cluster that is not fit for an upgrade: a learner that was added and never
// started, a member whose disk is nearly full, and then one that is down. Each command names what is wrong and what to do.
func TestUpgrade_inTrouble(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 3)
	e.use()
	for _, n := range e.nodes {
		e.waitPublished(n)
	}
	e.awaitLevel(ownLevel)
	next := filepath.Join(t.TempDir(), "quorate-new")
	script := `#!/bin/sh
echo '{"version":"1.2.0","level":{"reads_from":1,"reads_to":%d}}'
`
	if err := os.WriteFile(next, fmt.Appendf(nil, script, laterLevel), 0o755); err != nil {
		t.Fatal(err)
	}
	fit := func(status int, words ...string) {
		t.Helper()
		e.quorate(status, e.upgrade("check", next), append(words, "ok  level", "members run 1.1.0-dev")...)
		e.quorate(status, e.upgrade("plan", "--to=1.2.0"), append(words, "follower", "leader")...)
	}
	fit(0)
	followers := e.others(e.leader())
	e.add("127.0.0.1:9", true)
	fit(1, " was added and has not started: start it, or remove it")
	e.quorate(0, e.upgrade("status"), "not started")

	down, low := followers[0], followers[1]
	low.kill()
	low.flags = []string{"--disk-reserve-bytes=1152921504606846976"}
	e.launch(low, "existing")
	e.waitReady(low)
	full := "disk of " + low.name + " nearly full: "
	fit(1, full, "free space on the disk", "has not started")
	save := []string{"snapshot", "save", filepath.Join(t.TempDir(), "x.db"), "--endpoints=" + low.client}
	e.quorate(1, save, "take it from another member, or free space")

	down.kill()
	until(t, "it is noticed", func(context.Context) bool { return e.described().Strength.Active == 2 })
	fit(1, full, "the leader does not hear "+down.name+": wait if it is starting, else start it with either build, or replace it",
		"no voter may fail now (2 of 3 are up and have caught up): a restart would stop writes", "has not started")
	e.quorate(0, e.upgrade("hold"), "policy hold") // a majority decides
	e.quorate(1, e.upgrade("finalize", "--yes"), "no member knows a higher one")
	e.quorate(1, []string{"etcdctl", "downgrade", "enable", "1.1", "--endpoints=" + low.client},
		"release 1.1 is not older than what members run (1.1.0-dev", fmt.Sprintf("Feature level %d is active", ownLevel))
}
