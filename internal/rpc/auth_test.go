package rpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/client"
)

// as connects the official client as a user; an empty name connects it without one.
func (s *server) as(t testing.TB, user string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()}
	if user != "" {
		config.Username, config.Password = user, user+"pw"
	}
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// secured is a member with authentication enabled, and the users root, and alice, who may read and write a..b and read b..c.
func secured(t testing.TB) (s *server, root, alice, nobody *clientv3.Client) {
	t.Helper()
	s = serveMember(t, nil)
	enable(t, s)
	return s, s.as(t, "root"), s.as(t, "alice"), s.as(t, "")
}

// enable makes the users of secured, and enables authentication.
func enable(t testing.TB, s *server) {
	t.Helper()
	c, ctx := s.client(t), waitContext(t)
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "rootpw"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "alice", "alicepw"); return err },
		func() error { _, err := c.RoleAdd(ctx, "reader"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "reader", "a", "b", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error {
			_, err := c.RoleGrantPermission(ctx, "reader", "b", "c", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "alice", "reader"); return err },
		func() error { _, err := c.Put(ctx, "b1", "readable"); return err },
		func() error { _, err := c.Put(ctx, "s1", "secret"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure the permissions of every call of etcd's services.
func TestAuth_whoMayCallWhat(t *testing.T) {
	_, root, alice, nobody := secured(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*testWait) // some 150 calls, slow ones with the race detector
	defer cancel()
	granted, err := root.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(ctx, "s2", "leased", clientv3.WithLease(granted.ID)); err != nil {
		t.Fatal(err)
	}
	own, err := alice.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	op := func(ops ...clientv3.Op) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error { _, err := c.Txn(ctx).Then(ops...).Commit(); return err }
	}
	get := func(key string, o ...clientv3.OpOption) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error { _, err := c.Get(ctx, key, o...); return err }
	}
	put := func(key string, o ...clientv3.OpOption) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error { _, err := c.Put(ctx, key, "v", o...); return err }
	}
	for _, row := range []struct {
		name  string
		call  func(*clientv3.Client) error
		alice bool // alice may make the call
	}{
		{"get", get("a1"), true},
		{"get of what may only be read", get("b1"), true},
		{"get over both ranges", get("a", clientv3.WithRange("c")), true},
		{"get beyond", get("a", clientv3.WithRange("c\x00")), false},
		{"get from a key on", get("a", clientv3.WithFromKey()), false},
		{"get of all", get("", clientv3.WithPrefix()), false},
		{"serializable get of a secret", get("s1", clientv3.WithSerializable()), false},
		{"count of secrets", get("s", clientv3.WithPrefix(), clientv3.WithCountOnly()), false},
		{"put", put("a1"), true},
		{"put where only reading is permitted", put("b1"), false},
		{"put with the pair before", put("a1", clientv3.WithPrevKV()), true},
		{"put to the own lease", put("a2", clientv3.WithLease(own.ID)), true},
		{"put to a lease with a secret key", put("a1", clientv3.WithLease(granted.ID)), false},
		{"delete", func(c *clientv3.Client) error { _, err := c.Delete(ctx, "a9"); return err }, true},
		{"delete beyond", func(c *clientv3.Client) error {
			_, err := c.Delete(ctx, "a", clientv3.WithRange("c"))
			return err
		}, false},
		{"txn", op(clientv3.OpPut("a1", "v"), clientv3.OpGet("b1")), true},
		{"txn that reads a secret", op(clientv3.OpGet("s1")), false},
		{"txn that writes, and reads a secret", op(clientv3.OpPut("a1", "v"), clientv3.OpGet("s1")), false},
		{"nested txn that reads a secret", op(clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpGet("s1")})), false},
		{"txn that attaches to a lease with a secret key",
			op(clientv3.OpPut("a1", "v", clientv3.WithLease(granted.ID))), false},
		{"txn that compares a secret", func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Value("s1"), "=", "x")).Then(clientv3.OpPut("a1", "v")).Commit()
			return err
		}, false},
		{"txn that compares a range with a secret", func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version("a"), ">", 0).WithRange("z")).Commit()
			return err
		}, false},
		{"txn whose other branch reads a secret", func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).Else(clientv3.OpGet("s1")).Commit()
			return err
		}, false},
		{"txn of nothing", op(), true},
		{"compact", func(c *clientv3.Client) error { _, err := c.Compact(ctx, 2); return err }, false},
		{"grant", func(c *clientv3.Client) error { _, err := c.Grant(ctx, 60); return err }, true},
		{"keep a lease with a secret key", func(c *clientv3.Client) error {
			_, err := c.KeepAliveOnce(ctx, granted.ID)
			return err
		}, false},
		{"keep the own lease", func(c *clientv3.Client) error { _, err := c.KeepAliveOnce(ctx, own.ID); return err }, true},
		{"time to live", func(c *clientv3.Client) error { _, err := c.TimeToLive(ctx, granted.ID); return err }, true},
		{"time to live with secret keys", func(c *clientv3.Client) error {
			_, err := c.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
			return err
		}, false},
		{"leases", func(c *clientv3.Client) error { _, err := c.Leases(ctx); return err }, false},
		{"watch", watchOnce(ctx, "a", "c"), true},
		{"watch of a secret", watchOnce(ctx, "s1", ""), false},
		{"watch beyond", watchOnce(ctx, "a", "t"), false},
		{"watch of all", watchOnce(ctx, "", "\x00"), false},
		{"member list", func(c *clientv3.Client) error { _, err := c.MemberList(ctx); return err }, true},
		{"member update", func(c *clientv3.Client) error {
			_, err := c.MemberUpdate(ctx, uint64(testMember), []string{testPeerURL})
			return err
		}, false},
		{"member remove", func(c *clientv3.Client) error { _, err := c.MemberRemove(ctx, 7); return err }, false},
		{"member promote", func(c *clientv3.Client) error { _, err := c.MemberPromote(ctx, 7); return err }, false},
		{"member add", func(c *clientv3.Client) error {
			_, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:9"})
			return err
		}, false},
		{"status", func(c *clientv3.Client) error { _, err := c.Status(ctx, c.Endpoints()[0]); return err }, true},
		{"alarm list", func(c *clientv3.Client) error { _, err := c.AlarmList(ctx); return err }, true},
		{"alarm disarm", func(c *clientv3.Client) error {
			_, err := pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx,
				&pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE})
			return rpctypes.Error(err)
		}, false},
		{"defragment", func(c *clientv3.Client) error { _, err := c.Defragment(ctx, c.Endpoints()[0]); return err }, false},
		{"hash", func(c *clientv3.Client) error { _, err := c.HashKV(ctx, c.Endpoints()[0], 0); return err }, false},
		{"snapshot", func(c *clientv3.Client) error {
			stream, err := c.Snapshot(ctx)
			if err != nil {
				return err
			}
			defer stream.Close()
			_, err = stream.Read(make([]byte, 1))
			return err
		}, false},
		{"move leader", func(c *clientv3.Client) error { _, err := c.MoveLeader(ctx, 7); return err }, false},
		{"downgrade", func(c *clientv3.Client) error {
			_, err := c.Downgrade(ctx, clientv3.DowngradeValidate, "3.6")
			return err
		}, false},
		{"user add", func(c *clientv3.Client) error { _, err := c.UserAdd(ctx, "bob", "x"); return err }, false},
		{"user list", func(c *clientv3.Client) error { _, err := c.UserList(ctx); return err }, false},
		{"user get of oneself", func(c *clientv3.Client) error { _, err := c.UserGet(ctx, "alice"); return err }, true},
		{"user get of another", func(c *clientv3.Client) error { _, err := c.UserGet(ctx, "root"); return err }, false},
		{"user password", func(c *clientv3.Client) error { _, err := c.UserChangePassword(ctx, "bob", "y"); return err }, false},
		{"user grant", func(c *clientv3.Client) error { _, err := c.UserGrantRole(ctx, "bob", "reader"); return err }, false},
		{"user revoke", func(c *clientv3.Client) error { _, err := c.UserRevokeRole(ctx, "bob", "reader"); return err }, false},
		{"user delete", func(c *clientv3.Client) error { _, err := c.UserDelete(ctx, "bob"); return err }, false},
		{"role add", func(c *clientv3.Client) error { _, err := c.RoleAdd(ctx, "other"); return err }, false},
		{"role list", func(c *clientv3.Client) error { _, err := c.RoleList(ctx); return err }, false},
		{"role get of one's own", func(c *clientv3.Client) error { _, err := c.RoleGet(ctx, "reader"); return err }, true},
		{"role get of another", func(c *clientv3.Client) error { _, err := c.RoleGet(ctx, "other"); return err }, false},
		{"role grant", func(c *clientv3.Client) error {
			_, err := c.RoleGrantPermission(ctx, "other", "x", "", clientv3.PermissionType(clientv3.PermRead))
			return err
		}, false},
		{"role revoke", func(c *clientv3.Client) error { _, err := c.RoleRevokePermission(ctx, "other", "x", ""); return err }, false},
		{"role delete", func(c *clientv3.Client) error { _, err := c.RoleDelete(ctx, "other"); return err }, false},
		{"auth enable again", func(c *clientv3.Client) error { _, err := c.AuthEnable(ctx); return err }, false},
	} {
		if err := row.call(nobody); !errors.Is(err, rpctypes.ErrUserEmpty) {
			t.Errorf("%s by nobody: got %v, want %v", row.name, err, rpctypes.ErrUserEmpty)
		}
		err := row.call(alice)
		if row.alice && err != nil || !row.alice && !errors.Is(err, rpctypes.ErrPermissionDenied) {
			t.Errorf("%s by alice, who may: %t: got %v", row.name, row.alice, err)
		}
		if err := row.call(root); denied(err) {
			t.Errorf("%s by root: got %v", row.name, err)
		}
	}
	if status, err := nobody.AuthStatus(ctx); err != nil || !status.Enabled {
		t.Errorf("auth status by nobody: got %v, %v", status, err)
	}
	if _, err := alice.AuthDisable(ctx); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("disable by alice: %v", err)
	}
	if _, err := root.AuthDisable(ctx); err != nil {
		t.Errorf("disable by root: %v", err)
	}
	if _, err := nobody.Get(ctx, "s1"); err != nil {
		t.Errorf("get once authentication is disabled: %v", err)
	}
}

func denied(err error) bool {
	code := status.Code(err)
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrUserEmpty) || code == codes.Unauthenticated
}

// watchOnce creates a watch and returns why it was refused.
func watchOnce(ctx context.Context, key, end string) func(*clientv3.Client) error {
	return func(c *clientv3.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		options := []clientv3.OpOption{clientv3.WithCreatedNotify()}
		if end != "" {
			options = append(options, clientv3.WithRange(end))
		}
		response, ok := <-c.Watch(ctx, key, options...)
		if !ok {
			return errors.New("the watch ended without a word")
		}
		for _, known := range []error{rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCPermissionDenied} {
			if err := response.Err(); err != nil && err.Error() == known.Error() { // etcd wraps the reason in the same way
				return rpctypes.Error(known)
			}
		}
		return response.Err()
	}
}

// Ensure that a watch ends when its permission is revoked, before later puts are sent.
func TestAuth_watchEndsWithThePermission(t *testing.T) {
	_, root, alice, _ := secured(t)
	ctx := waitContext(t)
	events := alice.Watch(ctx, "a", clientv3.WithRange("c"), clientv3.WithCreatedNotify())
	if r := <-events; r.Err() != nil {
		t.Fatal(r.Err())
	}
	if _, err := root.Put(ctx, "a1", "before"); err != nil {
		t.Fatal(err)
	}
	if r := <-events; len(r.Events) != 1 {
		t.Fatalf("got %+v, want the event of a put", r)
	}
	if _, err := root.RoleRevokePermission(ctx, "reader", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(ctx, "b1", "after"); err != nil {
		t.Fatal(err)
	}
	for r := range events {
		if len(r.Events) > 0 {
			t.Fatalf("got the event of %q once its permission was revoked", r.Events[0].Kv.Key)
		}
	} // the client does not report why a watch ended that had begun
	if ctx.Err() != nil {
		t.Error("the watch goes on")
	}
}

// Ensure that a changed password ends the tokens and the watches of the former one.
func TestAuth_changedPasswordEndsTokens(t *testing.T) {
	s, root, alice, _ := secured(t)
	ctx := waitContext(t)
	events := alice.Watch(ctx, "a1", clientv3.WithCreatedNotify())
	<-events
	if _, err := root.UserChangePassword(ctx, "alice", "other"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Get(ctx, "a1"); err == nil {
		t.Error("who knew the former password reads on")
	}
	if _, err := root.Put(ctx, "a1", "v"); err != nil {
		t.Fatal(err)
	}
	for r := range events {
		if len(r.Events) > 0 {
			t.Error("who knew the former password watches on")
		}
		if r.Canceled {
			break
		}
	}
	config := clientv3.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop(), Username: "alice", Password: "alicepw"}
	if c, err := clientv3.New(config); err == nil {
		defer c.Close()
		if _, err := c.Get(ctx, "a1"); !errors.Is(err, rpctypes.ErrAuthFailed) {
			t.Errorf("the former password: got %v, want %v", err, rpctypes.ErrAuthFailed)
		}
	}
}

// Ensure that native clients write with the credentials of a user, and that one without gets an error at once.
func TestAuth_native(t *testing.T) {
	s := serveNative(t, nil)
	enable(t, s)
	ctx := waitContext(t)
	as := func(user string) *client.Client {
		config := client.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()}
		if user != "" {
			config.Username, config.Password = user, user+"pw"
		}
		c, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	alice := as("alice")
	if _, err := alice.Put(ctx, "a1", "v"); err != nil {
		t.Errorf("put by alice: %v", err)
	}
	if _, err := alice.Put(ctx, "s1", "v"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("put of a secret by alice: got %v, want %v", err, rpctypes.ErrPermissionDenied)
	}
	if _, err := alice.Txn(ctx).Then(clientv3.OpPut("a1", "w"), clientv3.OpGet("s1")).Commit(); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("txn that reads a secret by alice: got %v, want %v", err, rpctypes.ErrPermissionDenied)
	}
	if _, err := as("").Put(ctx, "a1", "v"); !errors.Is(err, rpctypes.ErrUserEmpty) {
		t.Errorf("put by nobody: got %v, want %v", err, rpctypes.ErrUserEmpty)
	}
	if got, err := as("root").Get(ctx, "s1"); err != nil || string(got.Kvs[0].Value) != "secret" {
		t.Errorf("the secret is now %v, %v", got, err)
	}
}

// Ensure that only users can raise the alarm that stops the writes of all: other clients get an error, even if there is no
// room.
func TestAuth_nobodyRaisesNoSpace(t *testing.T) {
	s := serveNative(t, func(o *rpcOptions) { o.QuotaBytes = 16 << 10 })
	native := openPropose(t, s, 0xc1) // before users had to log in
	session := native.open()
	enable(t, s)
	root, alice, nobody, ctx := s.as(t, "root"), s.as(t, "alice"), s.as(t, ""), waitContext(t)
	var err error
	for err == nil {
		_, err = root.Grant(ctx, 600)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	if _, err := root.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	wantAlarms := func(after string, want int) {
		t.Helper()
		if list, err := root.AlarmList(ctx); err != nil || len(list.Alarms) != want {
			t.Errorf("after %s: got %v, %v, want %d alarms", after, list, err, want)
		}
	}
	for _, row := range []struct {
		name string
		call func(*clientv3.Client) error
	}{
		{"put", func(c *clientv3.Client) error { _, err := c.Put(ctx, "a1", "v"); return err }},
		{"txn", func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).Then(clientv3.OpPut("a1", "v")).Commit()
			return err
		}},
		{"grant", func(c *clientv3.Client) error { _, err := c.Grant(ctx, 600); return err }},
	} {
		if err := row.call(nobody); !errors.Is(err, rpctypes.ErrUserEmpty) {
			t.Errorf("%s by nobody: got %v, want %v", row.name, err, rpctypes.ErrUserEmpty)
		}
		wantAlarms(row.name, 0)
	}
	request, err := proto.Marshal(put("a1"))
	if err != nil {
		t.Fatal(err)
	}
	native.send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{
		{Session: session, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT, Request: request},
	}})
	for err == nil {
		_, err = native.stream.Recv()
	}
	if !errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) {
		t.Errorf("native put by nobody: got %v, want %v", err, rpctypes.ErrUserEmpty)
	}
	wantAlarms("a native put", 0)
	if _, err := alice.Put(ctx, "a1", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("put by alice: got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	wantAlarms("a put by alice", 1)
}

// Ensure that a put that is not permitted raises no alarm, however full the store is: that would stop the writes of all.
func TestAuth_quotaAlarmNeedsPermission(t *testing.T) {
	s := serveMember(t, func(o *rpcOptions) { o.QuotaBytes = 16 << 10 })
	enable(t, s)
	root, alice, nobody, ctx := s.as(t, "root"), s.as(t, "alice"), s.as(t, ""), waitContext(t)
	large := strings.Repeat("v", 16<<10)
	for name, refused := range map[string]func() error{
		"alice": func() error { _, err := alice.Put(ctx, "s1", large); return err },
		"alice, in a transaction": func() error {
			_, err := alice.Txn(ctx).If(clientv3.Compare(clientv3.Version("a1"), "=", 0)).Then(clientv3.OpPut("s1", large)).Commit()
			return err
		},
		"nobody": func() error { _, err := nobody.Put(ctx, "a1", large); return err },
	} {
		if err := refused(); err == nil || errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("%s: got %v, want that it is not permitted", name, err)
		}
		if list, err := root.AlarmList(ctx); err != nil || len(list.Alarms) != 0 {
			t.Fatalf("%s raised %v, %v", name, list, err)
		}
	}
	if _, err := alice.Put(ctx, "a1", large); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("a put that is permitted and too large: got %v", err)
	}
	if list, err := root.AlarmList(ctx); err != nil || len(list.Alarms) != 1 {
		t.Errorf("got the alarms %v, %v; want NOSPACE", list, err)
	}
}
