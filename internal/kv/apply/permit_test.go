package apply_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

var (
	asRoot  = auth.Credentials{User: "root", Revision: auth.AnyRevision}
	asAlice = auth.Credentials{User: "alice", Revision: auth.AnyRevision}
)

// enableAuth makes root, and alice with the role some, which permits a..c, and enables authentication.
func enableAuth(b *bench) {
	b.t.Helper()
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.UserAdd, User: "alice", Hash: []byte("h")},
		{Kind: auth.RoleAdd, Role: "some"},
		{Kind: auth.GrantPermission, Role: "some", Permission: auth.Permission{
			Access: auth.ReadWrite, Key: []byte("a"), End: []byte("c")}},
		{Kind: auth.UserGrantRole, User: "alice", Role: "some"},
		{Kind: auth.Enable, Secret: make([]byte, 32)},
	} {
		if res := b.do(kv.Command{Auth: &c}); res.Err != nil {
			b.t.Fatal(res.Err)
		}
	}
}

// Ensure that a command that its user may not do is rejected when it is applied, changes nothing, and is never answered early.
func TestMachine_Apply_permission(t *testing.T) {
	b := newBench(t)
	enableAuth(b)
	id := openSession(b, 9, 1)
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}, By: asRoot})
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("z"), Lease: 7}, By: asRoot})
	put := func(key string) *kv.PutOp { return &kv.PutOp{Key: []byte(key), Value: []byte("v")} }
	for _, row := range []struct {
		name string
		cmd  kv.Command
		want error
	}{
		{"nobody", kv.Command{Put: put("a")}, auth.ErrUserEmpty},
		{"an unknown user", kv.Command{Put: put("a"), By: auth.Credentials{User: "bob", Revision: auth.AnyRevision}},
			auth.ErrPermissionDenied},
		{"one from before the password", kv.Command{Put: put("a"), By: auth.Credentials{User: "alice", Revision: 1}},
			auth.ErrOldRevision},
		{"a key beyond", kv.Command{Put: put("c"), By: asAlice}, auth.ErrPermissionDenied},
		{"a range beyond", kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte("d")}, By: asAlice},
			auth.ErrPermissionDenied},
		{"a lease of others", kv.Command{Put: &kv.PutOp{Key: []byte("a"), Lease: 7}, By: asAlice}, auth.ErrPermissionDenied},
		{"the end of such a lease", kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7}, By: asAlice}, auth.ErrPermissionDenied},
		{"a nested secret", kv.Command{Txn: &kv.TxnOp{Else: []kv.Op{{Txn: &kv.TxnOp{
			Then: []kv.Op{{Range: &kv.RangeOp{Key: []byte("z")}}}}}}}, By: asAlice}, auth.ErrPermissionDenied},
		{"a compaction", kv.Command{Compact: &kv.CompactOp{Revision: 2}, By: asAlice}, auth.ErrPermissionDenied},
		{"an alarm", kv.Command{Alarm: &kv.AlarmOp{}, By: asAlice}, auth.ErrPermissionDenied},
		{"a user", kv.Command{Auth: &auth.Change{Kind: auth.Disable}, By: asAlice}, auth.ErrPermissionDenied},
		{"one's own keys", kv.Command{Put: put("b"), By: asAlice}, nil},
		{"by a member", kv.Command{Compact: &kv.CompactOp{Revision: 2}, By: auth.Credentials{Member: true}}, nil},
	} {
		before := b.m.Store().Revision()
		e := b.entry(row.cmd)
		e.Proposal, e.ExactRevision = id(uint64(e.Index)+2), uint64(before)+1
		if _, sure := b.m.Evaluate(e); sure && row.want != nil {
			t.Errorf("%s: it is answered before it is applied", row.name)
		}
		res := b.apply(*e)[0]
		if !errors.Is(res.Err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, res.Err, row.want)
		}
		if row.want != nil && b.m.Store().Revision() != before {
			t.Errorf("%s: it changed something", row.name)
		}
	}
	expired := kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7, Term: 1}}
	if res := b.do(expired); res.Err != nil {
		t.Errorf("the end of an expired lease: %v", res.Err)
	}
}

// Ensure that users and roles survive a restart, in every detail.
func TestMachine_Users_restart(t *testing.T) {
	b := newBench(t)
	enableAuth(b)
	b.do(kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: "gone"}, By: asRoot})
	b.do(kv.Command{Auth: &auth.Change{Kind: auth.UserDelete, User: "gone"}, By: asRoot})
	before := b.m.Users()
	b.open()
	after := b.m.Users()
	if after == before || !after.Enabled() || after.Revision() != before.Revision() || after.Bytes() != before.Bytes() ||
		len(after.Users()) != 2 || len(after.Roles()) != 1 || string(after.Secret()) != string(before.Secret()) {
		t.Errorf("got %+v, want %+v", after, before)
	}
	if res := b.do(kv.Command{Put: &kv.PutOp{Key: []byte("c")}, By: asAlice}); !errors.Is(res.Err, auth.ErrPermissionDenied) {
		t.Errorf("a key beyond: got %v", res.Err)
	}
}

// Ensure that only root may use a lease with more keys than are checked.
func TestMachine_Permit_manyLeaseKeys(t *testing.T) {
	b := newBench(t)
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 5, TTLSeconds: 60}})
	for at := 0; at < apply.MaxLeaseKeys; at += 100 {
		op := &kv.TxnOp{}
		for i := range 100 {
			op.Then = append(op.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "a%d", at+i), Lease: 5}})
		}
		if res := b.do(kv.Command{Txn: op}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	enableAuth(b)
	more := func(key string, by auth.Credentials) error {
		return b.do(kv.Command{Put: &kv.PutOp{Key: []byte(key), Lease: 5}, By: by}).Err
	}
	if err := more("a0", asAlice); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 6, TTLSeconds: 60}, By: asRoot})
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("b2"), Lease: 6}, By: asRoot})
	both := kv.Command{By: asAlice, Txn: &kv.TxnOp{Then: []kv.Op{
		{Put: &kv.PutOp{Key: []byte("a0"), Lease: 5}}, {Txn: &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("b3"), Lease: 6}}}}},
	}}}
	if res := b.do(both); !errors.Is(res.Err, auth.ErrPermissionDenied) {
		t.Errorf("two leases that are too many together: got %v", res.Err)
	}
	if err := more("b", asRoot); err != nil {
		t.Errorf("beyond it, by root: %v", err)
	}
	if err := more("a0", asAlice); !errors.Is(err, auth.ErrPermissionDenied) {
		t.Errorf("beyond it: got %v", err)
	}
}

// Ensure that a native client's offer is applied whatever a voter knew of its login, and that its other proposals are not.
func TestMachine_Apply_offeredByFormerLogin(t *testing.T) {
	b := newBench(t)
	enableAuth(b)
	session := consensus.ClientSession(77, 77)
	b.do(kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 77, Number: session.Number}})
	former := auth.Credentials{User: "alice", Revision: 1}
	put := func(sequence, exact uint64) kv.Result {
		e := b.entry(kv.Command{Put: &kv.PutOp{Key: []byte("a")}, By: former})
		e.Proposal, e.ExactRevision = consensus.ProposalID{Session: session, Sequence: sequence}, exact
		if res, sure := b.m.Evaluate(e); exact > 0 && (!sure || res.Err != nil) {
			t.Errorf("an offer is evaluated as %v, %v", res.Err, sure)
		}
		return b.apply(*e)[0]
	}
	if res := put(1, uint64(b.m.Store().Revision())+1); res.Err != nil {
		t.Errorf("an offer: %v", res.Err)
	}
	if res := put(2, 0); !errors.Is(res.Err, auth.ErrOldRevision) {
		t.Errorf("a proposal: got %v, want %v", res.Err, auth.ErrOldRevision)
	}
}
