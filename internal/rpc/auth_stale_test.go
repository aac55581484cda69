package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/access"
)

// do applies a command at some members: with root's credentials, or without any while authentication is off.
func do(t testing.TB, command *kv.Command, members ...*machineBackend) {
	t.Helper()
	command.By = auth.Credentials{User: "root", Revision: auth.AnyRevision}
	for _, m := range members {
		if result, err := m.Propose(t.Context(), command); errors.Join(err, result.Err) != nil {
			t.Fatal(err, result.Err)
		}
	}
}

func change(c auth.Change) *kv.Command { return &kv.Command{Auth: &c} }

// twoMembers have the same users, authentication still off. Every password is "pw".
func twoMembers(t testing.TB, l *login.Login) (behind, ahead *machineBackend) {
	t.Helper()
	behind, ahead = newMachineBackend(t), newMachineBackend(t)
	hash, err := l.Hash(t.Context(), "pw")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: hash}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.UserAdd, User: "alice", Hash: hash}, {Kind: auth.RoleAdd, Role: "r"},
		{Kind: auth.GrantPermission, Role: "r", Permission: auth.Permission{Access: auth.ReadWrite, Key: []byte("a"), End: []byte("b")}},
		{Kind: auth.UserGrantRole, User: "alice", Role: "r"},
	} {
		do(t, change(c), behind, ahead)
	}
	return behind, ahead
}

func enableAt(t testing.TB, members ...*machineBackend) {
	do(t, change(auth.Change{Kind: auth.Enable, Secret: bytes.Repeat([]byte{7}, 32)}), members...)
}

func controlOf(m *machineBackend, l *login.Login) *access.Control {
	return access.New(access.Options{
		Machine: func() (*apply.Machine, func()) { return m.machine, func() {} }, Users: m.machine.Users, Tokens: l,
		CatchUp: func(context.Context) error { return nil },
	})
}

func newLogin(t testing.TB) *login.Login {
	l, err := login.New(login.Options{Clock: env.WallClock{}, BcryptCost: 4})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func withToken(t testing.TB, l *login.Login, state *auth.State, user string) context.Context {
	token, err := l.Login(t.Context(), state, user, "pw")
	if err != nil {
		t.Fatal(err)
	}
	return metadata.NewIncomingContext(t.Context(), metadata.Pairs("token", token))
}

// Ensure that a token of the former password cannot write through a member that has not applied the change yet, neither by
// etcd's API nor by the native one.
func TestAuth_formerPasswordThroughMemberBehind(t *testing.T) {
	l := newLogin(t)
	behind, ahead := twoMembers(t, l)
	enableAt(t, behind, ahead)
	ctx := withToken(t, l, behind.machine.Users(), "alice")
	do(t, change(auth.Change{Kind: auth.UserPassword, User: "alice", Hash: []byte("other")}), ahead)
	put := func() *kv.Command { return &kv.Command{Put: &kv.PutOp{Key: []byte("a1"), Value: []byte("v")}} }
	etcd, native := put(), put()
	if err := controlOf(behind, l).Sign(ctx, etcd); err != nil {
		t.Fatal(err)
	}
	if err := controlOf(behind, l).SignOffer(ctx, native); err != nil {
		t.Fatal(err)
	}
	if result, _ := ahead.Propose(ctx, etcd); !errors.Is(result.Err, auth.ErrOldRevision) {
		t.Errorf("etcd's API: got %v, want %v", result.Err, auth.ErrOldRevision)
	}
	if result, _ := ahead.Propose(ctx, native); result.Err == nil {
		t.Error("native: the token of the former password has written, after the change of password")
	}
}

// Ensure that a member which has not applied yet that authentication was enabled takes no offers without credentials from a
// client with a token: other members take them with the user's credentials.
func TestAuth_offersAcrossEnable(t *testing.T) {
	l := newLogin(t)
	behind, ahead := twoMembers(t, l)
	enableAt(t, ahead)
	ctx := withToken(t, l, ahead.machine.Users(), "alice")
	if !controlOf(behind, l).Unsettled(ctx) || controlOf(ahead, l).Unsettled(ctx) || controlOf(behind, l).Unsettled(t.Context()) {
		t.Error("who lags takes the offer, or who does not refuses it")
	}
}

// Ensure that a client without a token cannot raise an alarm, or compact, through a member that has not applied yet that
// authentication was enabled.
func TestAuth_alarmOfNobody(t *testing.T) {
	l := newLogin(t)
	behind, ahead := twoMembers(t, l)
	enableAt(t, ahead)
	ctx := t.Context() // no token
	control := controlOf(behind, l)
	if err := control.Root(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*kv.Command{
		{Alarm: &kv.AlarmOp{Activate: true, Member: uint64(testMember), Kind: kv.AlarmNoSpace}},
		{Compact: &kv.CompactOp{Revision: 1}},
	} {
		if err := control.Sign(ctx, c); err != nil {
			t.Fatal(err)
		}
		result, err := ahead.Propose(ctx, c)
		if c.Alarm != nil && result.Err == nil && err == nil {
			t.Errorf("nobody raised an alarm while authentication is on: %v", result.Alarms)
		}
		if c.Compact != nil && result.Err == nil {
			t.Error("nobody compacted")
		}
	}
}
