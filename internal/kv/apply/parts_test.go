package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

const (
	large     = kv.LeaseID(7) // a lease of two and a half parts
	largeKeys = 5 * apply.EndBytes / 2 / (largeKey + apply.EndKeyBytes)
	largeKey  = 1 << 10
)

func keyOfLarge(i int) string { return fmt.Sprintf("k%03d", i) + strings.Repeat("k", largeKey-4) }

// newBenchOfLarge is a bench with a large lease.
func newBenchOfLarge(t *testing.T) *bench {
	b := newBench(t)
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: large, TTLSeconds: 60}})
	for i := range largeKeys {
		b.do(kv.Command{Put: &kv.PutOp{Key: []byte(keyOfLarge(i)), Lease: large}})
	}
	return b
}

func revokeLarge() kv.Command { return kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: large}} }

// Ensure that a large lease ends in parts, each at one revision, wherever the member was restarted, and that in between it
// cannot be renewed, listed or given keys; and that a member which applies the entries in one batch does the same.
func TestMachine_Apply_leaseInParts(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBenchOfLarge(t)
		var revisions []kv.Revision
		for b.m.Leases().Exists(large) && len(revisions) < 10 {
			before := b.leaseKeys(large)
			if result := b.do(revokeLarge()); result.Err != nil {
				t.Fatal(result.Err)
			}
			if again {
				b.open()
			}
			left := b.leaseKeys(large)
			revisions = append(revisions, b.m.Store().Revision())
			if gone := len(before) - len(left); gone > apply.EndBytes/(largeKey+apply.EndKeyBytes)+1 || !slices.Equal(left, before[gone:]) {
				t.Errorf("part %d: %d of %d keys are gone", len(revisions), gone, len(before))
			}
			if len(left) > 0 {
				b.checkEnding(left)
			}
		}
		first := kv.Revision(largeKeys) + 1
		if !slices.Equal(revisions, []kv.Revision{first + 1, first + 2, first + 3}) {
			t.Errorf("parts at revisions %d, want three after %d", revisions, first)
		}
		if got := b.do(revokeLarge()); !errors.Is(got.Err, kv.ErrLeaseNotFound) {
			t.Errorf("a part more: %v", got.Err)
		}
		if got := b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: large, TTLSeconds: 60}}); got.Err != nil {
			t.Errorf("granted anew: %v", got.Err)
		}
		if size, keys := b.m.Leases().SizeBytes(), b.leaseKeys(large); size != 256 || len(keys) != 0 {
			t.Errorf("leases have %d bytes, and %d keys", size, len(keys))
		}
		other := newBench(t)
		other.apply(b.log...)
		if got, want := other.m.Chain(), b.m.Chain(); got != want {
			t.Errorf("started again %t: members differ: %v and %v", again, got, want)
		}
	}
}

// checkEnding checks the large lease, of which these keys are left.
func (b *bench) checkEnding(left []string) {
	b.t.Helper()
	leases, now := b.m.Leases(), time.Unix(1e9, 0)
	put := func(key string, op kv.PutOp) error {
		op.Key = []byte(key)
		return b.do(kv.Command{Put: &op}).Err
	}
	if err := put("other", kv.PutOp{Lease: large}); !errors.Is(err, kv.ErrLeaseNotFound) {
		b.t.Errorf("another key: %v", err)
	}
	if err := put(left[0], kv.PutOp{Lease: large}); !errors.Is(err, kv.ErrLeaseNotFound) {
		b.t.Errorf("a key that hangs there: %v", err)
	}
	if got := b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: large}}); !errors.Is(got.Err, kv.ErrLeaseExists) {
		b.t.Errorf("granted meanwhile: %v", got.Err)
	}
	if infos := leases.Leases(now); len(infos) != 0 {
		b.t.Errorf("listed: %v", infos)
	}
	leases.Promote(now, time.Hour)
	if ids := leases.Expired(now, 10, 10); !slices.Equal(ids, []kv.LeaseID{large}) {
		b.t.Errorf("a new leader ends %v", ids)
	}
	if _, err := leases.Renew(large, now); !errors.Is(err, kv.ErrLeaseNotFound) {
		b.t.Errorf("renewed: %v", err)
	}
	if _, err := leases.TimeToLive(large, now); !errors.Is(err, kv.ErrLeaseNotFound) {
		b.t.Errorf("asked for: %v", err)
	}
	leases.Demote()
}

// Ensure that two parts in one batch are two parts, and that keys which were detached between them stay.
func TestMachine_Apply_leaseInParts_together(t *testing.T) {
	b := newBenchOfLarge(t)
	part := b.entry(revokeLarge())
	kept, freed := keyOfLarge(largeKeys-1), keyOfLarge(0)
	b.apply(*part, *b.entry(kv.Command{Put: &kv.PutOp{Key: []byte(kept)}}), *b.entry(kv.Command{Put: &kv.PutOp{Key: []byte(freed)}}),
		*b.entry(revokeLarge()), *b.entry(revokeLarge()))
	if b.m.Leases().Exists(large) || b.get(kept) == nil || b.get(freed) == nil {
		t.Errorf("the lease exists: %t; keys %v, %v", b.m.Leases().Exists(large), b.get(kept) != nil, b.get(freed) != nil)
	}
	if got := b.m.Store().Size().Keys; got != 2 {
		t.Errorf("%d keys are left", got)
	}
}

// Ensure that a leader names the lease for part after part, and other due leases in between.
func TestLessor_Expired_inParts(t *testing.T) {
	b := newBenchOfLarge(t)
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 8, TTLSeconds: 61}})
	leases, now := b.m.Leases(), time.Unix(1e9, 0)
	leases.Promote(now, 0)
	leases.Expired(now, 10, 10)
	var ended []kv.LeaseID
	for now = now.Add(time.Hour); leases.Len() > 0 && len(ended) < 10; now = now.Add(time.Second) {
		ids := leases.Expired(now, 1, 1)
		if len(ids) != 1 {
			t.Fatalf("due after %v: %v", ended, ids)
		}
		ended = append(ended, ids[0])
		b.do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: ids[0], Term: 1}})
	}
	if want := []kv.LeaseID{large, large, 8, large}; !slices.Equal(ended, want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
}
