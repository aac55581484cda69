package clients

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
)

// machineWithSession is a state machine in which one session is open.
func machineWithSession(t *testing.T, session consensus.SessionID) *apply.Machine {
	t.Helper()
	m := applytest.Open(t, 1, consensus.Config{})
	open := kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(session.Member), Number: session.Number}}
	results, err := m.Apply([]consensus.Entry{{Index: 1, Term: 1, Kind: consensus.EntryCommand,
		Proposal: consensus.ProposalID{Session: session}, Payload: open.Append(nil)}})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	return m
}

// Ensure that clients which cannot be reported, because no member leads, take no more memory than the leader's record may.
func TestLiveness_add_bounded(t *testing.T) {
	var r liveness
	for id := range consensus.MemberID(MaxHeardClients + 10) {
		r.add(id)
	}
	r.add(0) // an id that is known already
	if got := len(r.takeFresh()); got != MaxHeardClients {
		t.Errorf("%d clients wait to be told of, want %d", got, MaxHeardClients)
	}
}

// watcher is a member that leads, and its clock.
type watcher struct {
	Member
	env.Clock
	machine *apply.Machine
	leader  consensus.MemberID
	now     time.Time
}

func (w *watcher) Leader() consensus.MemberID        { return w.leader }
func (w *watcher) Machine() (*apply.Machine, func()) { return w.machine, func() {} }
func (w *watcher) Now() time.Time                    { return w.now }

// Ensure which sessions a leader may retire: not those of a client that was heard meanwhile, here or by another member; none once
// it does not lead; and none of clients that may have waited while the process stood still.
func TestClients_StillSilent(t *testing.T) {
	const self, client, patience = 1, 1000, time.Minute
	session := consensus.ClientSession(client, 1)
	for _, row := range []struct {
		name      string
		meanwhile func(*Clients, *watcher)
		retires   bool
	}{
		{"silent", func(*Clients, *watcher) {}, true},
		{"heard here", func(c *Clients, _ *watcher) { c.KeepClient(client) }, false},
		{"heard by another member", func(c *Clients, _ *watcher) { c.Heard([]consensus.MemberID{client}) }, false},
		{"another one heard", func(c *Clients, _ *watcher) { c.KeepClient(client + 1) }, true},
		{"deposed", func(_ *Clients, w *watcher) { w.leader = 2 }, false},
	} {
		w := &watcher{machine: machineWithSession(t, session), leader: self, now: time.Unix(1_000_000, 0)}
		c := New(Options{ID: self, Patience: patience, Stopping: t.Context(), Clock: w}, w)
		var silent []consensus.SessionID
		for range clientScanParts + 1 {
			if silent = c.Scan(); len(silent) > 0 {
				break
			}
			w.now = w.now.Add(c.ScanInterval())
		}
		if len(silent) != 1 || silent[0] != session {
			t.Fatalf("%s: %v are silent after %v", row.name, silent, patience)
		}
		row.meanwhile(c, w)
		if retires := len(c.StillSilent(silent)) > 0; retires != row.retires {
			t.Errorf("%s: retires %t", row.name, retires)
		}
	}
	w := &watcher{machine: machineWithSession(t, session), leader: self, now: time.Unix(1_000_000, 0)}
	c := New(Options{ID: self, Patience: patience, Stopping: t.Context(), Clock: w}, w)
	c.Scan()
	w.now = w.now.Add(2 * patience)
	if silent := c.Scan(); len(silent) != 0 {
		t.Errorf("after a pause of the process: %v are silent", silent)
	}
}
