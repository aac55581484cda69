package process_test

import (
	"fmt"
	"testing"
)

// TestReplace kills a member for good and puts another one in its place, by the command that an operator would give, while
// clients write. The dead one comes back with its old data and is told that it is no member any more.
func TestReplace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		leads bool
	}{{"the leader", true}, {"a follower", false}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := startTrio(t)
			stop := e.witness(clients, e.nodes...)
			dead := e.leader()
			if !row.leads {
				dead = e.others(dead)[0]
			}
			dead.kill()
			heir := e.ranged("m4")
			command := e.begin(e.member("replace", dead.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes")...)
			e.waitLog(command, "--join")
			e.leave(dead)
			e.enter(heir, e.nodes...)
			e.finish(command, 0, "PLAN", "now", "SUPERQUORUM", "1 down ("+dead.name, "add m4 (http://"+heir.peer+")",
				"--name m4 --join http://", "start", "done in ", dead.name+" may be switched off")
			e.checkVoters()
			cluster := e.described()
			if !cluster.Settled || cluster.Joint || cluster.Strength.Voters != 3 || cluster.Strength.Tolerates != 1 {
				t.Errorf("afterwards the cluster is not settled, or not as strong as before: %v", cluster)
			}
			job := e.job("done")
			e.quorate(0, e.member("jobs", "show", hex(job.Id)), "replace", "join", "start", "catch-up", "swap", "settle", "done")
			e.quorate(0, e.member("list"), "m4", "tolerates 1 more failure")

			e.launch(dead, "existing")
			e.waitRemoved(dead)
			stop()
			e.waitReady(heir)
			e.checkVoters()
		})
	}
}

func hex(id uint64) string { return fmt.Sprintf("%x", id) }
