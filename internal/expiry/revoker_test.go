package expiry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/datadir/datatest"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
)

// leader is a member that may lead, with a lease of ten seconds.
type leader struct {
	*expiry.Revoker
	leads, corrupt bool
	revoked        []kv.LeaseRevokeOp
}

func newLeader(t *testing.T) (l *leader, data *datadir.Data) {
	t.Helper()
	data = datatest.Create(t, datatest.Options(), 1)
	t.Cleanup(func() { datatest.Close(t, data) })
	grant := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 10}}
	entry := consensus.Entry{Index: 1, Term: 1, Kind: consensus.EntryCommand, Payload: grant.Append(nil)}
	if _, err := data.Machine.Apply([]consensus.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	var stores datadir.Stores
	stores.Set(data.Generation)
	l = &leader{}
	l.Revoker = expiry.New(expiry.Options{
		Stores: &stores, Clock: env.WallClock{}, Extend: time.Second, Logger: slog.New(slog.DiscardHandler),
		Leads:     func() bool { return l.leads },
		Corrupt:   func() bool { return l.corrupt },
		ReadIndex: func(context.Context) error { return nil },
		Propose: func(_ context.Context, command *kv.Command) (kv.Result, error) {
			l.revoked = append(l.revoked, *command.LeaseRevoke)
			return kv.Result{}, nil
		},
	})
	return l, data
}

// Ensure that a leader revokes a lease after its TTL and the time without a leader, in the term in which it began to
// count, and that one that is marked corrupt revokes nothing.
func TestRevoker_Run(t *testing.T) {
	for _, corrupt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, data := newLeader(t)
			l.leads, l.corrupt = true, corrupt
			l.Lead(data.Machine, true, 5)
			early, cancel := context.WithTimeout(t.Context(), 10900*time.Millisecond)
			defer cancel()
			if err := l.Run(early); err != nil || len(l.revoked) != 0 {
				t.Errorf("%v, revoked early: %v", err, l.revoked)
			}
			late, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			err := l.Run(late)
			switch {
			case err != nil:
				t.Error(err)
			case corrupt && len(l.revoked) != 0:
				t.Errorf("a corrupt member revoked %v", l.revoked)
			case !corrupt && (len(l.revoked) == 0 || l.revoked[0] != kv.LeaseRevokeOp{ID: 7, Term: 5}):
				t.Errorf("revoked %v", l.revoked)
			}
		})
	}
}

func TestRevoker_Renew(t *testing.T) {
	l, data := newLeader(t)
	if _, err := l.Renew(t.Context(), 7); !errors.Is(err, expiry.ErrNotLeader) || !expiry.Elsewhere(err) {
		t.Errorf("a follower: %v", err)
	}
	l.leads = true
	if _, err := l.Renew(t.Context(), 7); err == nil || !expiry.Elsewhere(err) {
		t.Errorf("a leader that has not begun to count: %v", err)
	}
	l.Lead(data.Machine, true, 5)
	if ttl, err := l.Renew(t.Context(), 7); ttl != 10 || err != nil {
		t.Errorf("renew: %d, %v", ttl, err)
	}
	if _, err := l.Renew(t.Context(), 8); !errors.Is(err, kv.ErrLeaseNotFound) || expiry.Elsewhere(err) {
		t.Errorf("no such lease: %v", err)
	}
	if remaining, granted, err := l.TimeToLive(t.Context(), 7); granted != 10 || remaining > 10 || remaining < 9 || err != nil {
		t.Errorf("time to live: %d of %d, %v", remaining, granted, err)
	}
	l.Lead(data.Machine, false, 6)
	if _, err := l.Renew(t.Context(), 7); err == nil {
		t.Error("one that leads no more renews")
	}
}
