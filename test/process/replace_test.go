package process_test

import (
	"context"
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
		added bool // the newcomer, by etcd's API, before the command
	}{{"the leader", true, false}, {"a follower", false, false}, {"a follower, by one that was added before", false, true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := startTrio(t)
			stop := e.witness(clients, e.nodes...)
			dead := e.leader()
			if !row.leads {
				dead = e.others(dead)[0]
			}
			dead.kill()
			until(t, "it is noticed", func(context.Context) bool { return e.described().Strength.Active == 2 })
			heir := e.node("m4")
			if row.added {
				e.add(heir.peer, false)
			}
			command := e.begin(e.member("replace", dead.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes")...)
			e.job("running", "start")
			e.leave(dead)
			e.enter(heir, e.nodes...)
			e.finish(command, 0, "PLAN", "now", "SUPERQUORUM", "1 down ("+dead.name, "--name m4 --join http://", heir.peer, "start",
				"done in ", dead.name+" may be switched off")
			e.checkVoters()
			cluster := e.described()
			if !cluster.Settled || cluster.Joint || cluster.Strength.Voters != 3 || cluster.Strength.Tolerates != 1 {
				t.Errorf("afterwards the cluster is not settled, or not as strong as before: %v", cluster)
			}
			job := e.job("done")
			e.quorate(0, e.member("jobs", "show", hex(job.Id)), "replace", "start", "catch-up", "swap", "settle", "done")
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
