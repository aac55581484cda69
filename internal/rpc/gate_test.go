package rpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func requireLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
}

func TestGate_requireLeader(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, func(o *rpcOptions) { o.ElectionTimeout = 10 * time.Millisecond })
	conn, ctx := s.conn(t), waitContext(t)
	kvc := pb.NewKVClient(conn)
	local := &pb.RangeRequest{Key: []byte("k"), Serializable: true}
	if _, err := kvc.Range(requireLeader(ctx), local); err != nil {
		t.Errorf("with a leader: %v", err)
	}
	strict, err := pb.NewWatchClient(conn).Watch(requireLeader(ctx))
	if err != nil {
		t.Fatal(err)
	}
	lax, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []pb.Watch_WatchClient{strict, lax} {
		w := &watcher{t: t, stream: stream}
		w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	}
	backend.lead(0)
	noLeader := rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader)
	if _, err := kvc.Range(requireLeader(ctx), local); rpctypes.ErrorDesc(err) != noLeader ||
		status.Code(err) != codes.Unavailable {
		t.Errorf("without a leader: got %v, want %v", err, rpctypes.ErrGRPCNoLeader)
	}
	if _, err := kvc.Range(ctx, local); err != nil {
		t.Errorf("a serializable read that requires no leader: %v", err)
	}
	if _, err := strict.Recv(); rpctypes.ErrorDesc(err) != noLeader {
		t.Errorf("a stream that requires a leader: got %v, want %v", err, rpctypes.ErrGRPCNoLeader)
	}
	backend.lead(testMember)
	if _, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("k")}); err != nil {
		t.Fatal(err)
	}
	if r, err := lax.Recv(); err != nil || len(r.Events) != 1 {
		t.Errorf("a stream that does not: got %v, %v; want the event", r, err)
	}
}

func TestGate_learnerServesLittle(t *testing.T) {
	backend := newMachineBackend(t)
	backend.learner = true
	s := serve(t, backend, nil)
	conn, ctx := s.conn(t), waitContext(t)
	kvc, maintenance := pb.NewKVClient(conn), pb.NewMaintenanceClient(conn)
	k := []byte("k")
	snapshot := func() error {
		stream, err := maintenance.Snapshot(ctx, &pb.SnapshotRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	watch := func() error {
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for _, row := range []struct {
		name string
		call func() error
		want error
	}{
		{"status", func() error { _, err := maintenance.Status(ctx, &pb.StatusRequest{}); return err }, nil},
		{"a serializable range", func() error {
			_, err := kvc.Range(ctx, &pb.RangeRequest{Key: k, Serializable: true})
			return err
		}, nil},
		{"a snapshot", snapshot, nil},
		{"a linearizable range", func() error { _, err := kvc.Range(ctx, &pb.RangeRequest{Key: k}); return err },
			rpctypes.ErrGRPCNotSupportedForLearner},
		{"a put", func() error { _, err := kvc.Put(ctx, &pb.PutRequest{Key: k}); return err },
			rpctypes.ErrGRPCNotSupportedForLearner},
		{"a member list", func() error {
			_, err := pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{})
			return err
		}, rpctypes.ErrGRPCNotSupportedForLearner},
		{"a watch", watch, rpctypes.ErrGRPCNotSupportedForLearner},
	} {
		if got := row.call(); rpctypes.ErrorDesc(got) != rpctypes.ErrorDesc(row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	if code, body := s.get(t, "/readyz?verbose"); code != 503 || !strings.Contains(body, "[-]non_learner failed") {
		t.Errorf("readyz of a learner: got %d %s, want non_learner to fail", code, body)
	}
}

func TestHandler_endpoints(t *testing.T) {
	s := serveMember(t, nil)
	if _, err := s.client(t).Put(waitContext(t), "k", "v"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/health":                     `{"health":"true","reason":""}`,
		"/health?serializable=true":   `{"health":"true","reason":""}`,
		"/livez":                      "ok\n",
		"/livez/serializable_read":    "ok\n",
		"/livez?verbose":              "[+]progress ok\n[+]serializable_read ok\nok\n",
		"/readyz":                     "ok\n",
		"/readyz/data_corruption":     "ok\n",
		"/readyz/linearizable_read":   "ok\n",
		"/readyz/non_learner":         "ok\n",
		"/readyz?exclude=non_learner": "ok\n",
		"/version":                    `{"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"}`,
	} {
		if code, body := s.get(t, path); code != 200 || body != want {
			t.Errorf("%s: got %d %q, want 200 %q", path, code, body, want)
		}
	}
	if code, body := s.get(t, "/debug/vars"); code != 200 || !strings.HasPrefix(body, "{\n\"cmdline\"") {
		t.Errorf("/debug/vars: got %d %.40q", code, body)
	}
	_, metrics := s.get(t, "/metrics")
	for _, line := range []string{
		"etcd_server_has_leader 1", "etcd_server_is_leader 1", "etcd_server_is_learner 0",
		"etcd_mvcc_put_total 1", "etcd_debugging_mvcc_keys_total 1", `etcd_server_version{server_version="3.7.3"} 1`,
		`etcd_cluster_version{cluster_version="3.7"} 1`, "etcd_server_quota_backend_bytes 2.147483648e+09",
		fmt.Sprintf(`etcd_server_id{server_id="%x"} 1`, uint64(testMember)),
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Put",` +
			`grpc_service="etcdserverpb.KV",grpc_type="unary"} 1`,
		`etcd_server_healthcheck{name="non_learner",type="readyz"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
}

func TestMux_silentConnectionsAreNoBurden(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	silent, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if code, _ := s.get(t, "/livez"); code != 200 {
		t.Errorf("beside a silent connection: got %d, want 200", code)
	}
	if _, err := fmt.Fprint(silent, "GET /version HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := io.ReadAll(silent)
	if err != nil || !strings.Contains(string(reply), "200 OK") {
		t.Errorf("once it speaks: got %q, %v; want an answer", reply, err)
	}
}
