package member

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
)

// Ensure that the first refusal by a peer ends this member, and that its directory is marked as lost unless it may be the
// original of two copies.
func TestPeerHandler_Refused(t *testing.T) {
	for _, row := range []struct {
		reason identity.Reason
		marked bool
	}{
		{identity.LostDisk, true},
		{identity.Cloned, false},
	} {
		m := memberOfMachine(t)
		m.PeerHandler().Refused(2, &identity.Refusal{Reason: row.reason, Text: "no"})
		m.PeerHandler().Refused(3, &identity.Refusal{Reason: identity.RolledBack, Text: "no"})
		<-m.Failed()
		var lost *datadir.LostError
		if !errors.As(m.Err(), &lost) || lost.Reason != row.reason {
			t.Errorf("reason %v: the member ended with %v", row.reason, m.Err())
		}
		if err := datadir.CheckLost(m.data.Options); errors.As(err, &lost) != row.marked {
			t.Errorf("reason %v: the directory says %v", row.reason, err)
		}
	}
}

// Ensure that a member whose applied configuration binds its data directory does not obey a peer that says the binding is lost:
// that peer has another history. It obeys other refusals.
func TestPeerHandler_Refused_bound(t *testing.T) {
	own := consensus.Member{ID: 1, Storage: consensus.StorageID{1}}
	m := memberOf(t, consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{own}})
	if m.PeerHandler().Refused(2, &identity.Refusal{Reason: identity.LostDisk, Text: "no"}) || m.Err() != nil {
		t.Errorf("the member ended on the word of a process of another history: %v", m.Err())
	}
	if err := datadir.CheckLost(m.data.Options); err != nil {
		t.Errorf("the directory says %v", err)
	}
	if !m.PeerHandler().Refused(2, &identity.Refusal{Reason: identity.RolledBack, Text: "no"}) {
		t.Error("a member that was rolled back does not believe it")
	}
	<-m.Failed()
}

// Ensure that no process joins a cluster that it does not name, and that an unknown call gets another error than one that
// failed.
func TestPeerHandler_Call(t *testing.T) {
	handler := memberOfMachine(t).PeerHandler()
	for method, want := range map[string]codes.Code{
		methodJoin.Name: codes.FailedPrecondition, "of.tomorrow": codes.Unimplemented, methodRenew.Name: codes.InvalidArgument,
	} {
		if _, err := handler.Call(t.Context(), method, nil); status.Code(err) != want {
			t.Errorf("%s: got %v, want %v", method, err, want)
		}
	}
}

// Ensure that senders outside the configuration share one limit, whatever ids they give themselves, and that each member has
// its own.
func TestPeerHandler_Receive_unknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memberOf(t, consensus.Config{Voters: []consensus.MemberID{1, 2},
			Members: []consensus.Member{{ID: 1, Storage: consensus.StorageID{1}}, {ID: 2, Storage: consensus.StorageID{2}}}})
		receive := func(from consensus.MemberID) {
			m.PeerHandler().Receive([]consensus.Message{{From: from, To: 1, Kind: consensus.MsgHeartbeat}})
		}
		var heard atomic.Int64 // all but the first message, which uses up the limit
		receive(3)
		for id := range consensus.MemberID(10) {
			go func() {
				receive(4 + id)
				heard.Add(1)
			}()
		}
		synctest.Wait()
		if n := heard.Load(); n != 0 {
			t.Errorf("%d processes of unknown ids have room of their own", n)
		}
		receive(2) // does not block
		m.lanes.Inbox().Close()
		synctest.Wait()
		if n := heard.Load(); n != 10 {
			t.Errorf("%d of 10 were let go", n)
		}
	})
}
