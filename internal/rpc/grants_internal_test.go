package rpc

import "testing"

// Ensure that members which see none of each other's grants never admit more than all of them may hold, and that one alone
// admits all that it may.
func TestGrants_enter(t *testing.T) {
	const most, admits, members = 400, 300, 5
	var all [members]grants
	logged := 0
	for i := range all { // each sees the initial leases, and its own
		for all[i].enter(admits-1-all[i].underWay, admits, most, members) {
			logged++
		}
	}
	if total := admits - 1 + logged; total > most || logged < members {
		t.Errorf("%d were let in, for %d there is memory", total, most)
	}
	if all[0].enter(admits, admits, most, members) {
		t.Error("one was let in though there are enough")
	}
	all[0].leave()
	if !all[0].enter(0, admits, most, members) {
		t.Error("none was let in when one had come to its end")
	}
	var few grants
	if !few.enter(0, 1, 1, members) || few.enter(0, 1, 1, members) {
		t.Error("of one, another number than one was let in")
	}
}
