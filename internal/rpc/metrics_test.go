package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that etcd's metrics count the same as in etcd: operations, not keys, as they are applied.
func TestServices_Collector_meanings(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, nil)
	c, ctx := s.client(t), waitContext(t)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Put(ctx, "a", "12345"))
	must(c.Txn(ctx).Then(clientv3.OpPut("b", "1"), clientv3.OpPut("c", "1"), clientv3.OpGet("a")).Commit())
	must(c.Txn(ctx).Then(clientv3.OpGet("a"), clientv3.OpGet("b")).Commit())
	must(c.Get(ctx, "a", clientv3.WithSerializable()))
	must(c.Delete(ctx, "a", clientv3.WithFromKey()))
	must(c.Grant(ctx, 100))
	must(c.HashKV(ctx, s.addr, 0))
	if _, err := c.Grant(ctx, 9_000_000_001); err == nil {
		t.Fatal("a lease of 285 years was granted")
	}
	_, body := s.get(t, "/metrics")
	for _, line := range []string{
		"etcd_mvcc_put_total 3", "etcd_mvcc_delete_total 1", "etcd_mvcc_range_total 4", "etcd_mvcc_txn_total 2",
		"etcd_debugging_mvcc_total_put_size_in_bytes 10", "etcd_debugging_lease_granted_total 1",
		"etcd_debugging_lease_ttl_total_sum 100", "etcd_mvcc_hash_rev_duration_seconds_count 1",
		`etcd_server_request_duration_seconds_count{success="true",type="Put"} 1`,
		`etcd_server_request_duration_seconds_count{success="true",type="Txn"} 1`,
		`etcd_server_request_duration_seconds_count{success="true",type="ReadonlyTxn"} 1`,
		`etcd_server_request_duration_seconds_count{success="true",type="Range"} 1`,
		`etcd_server_range_duration_seconds_count{success="true"} 1`,
		"etcd_server_leader_changes_seen_total 1", "etcd_debugging_mvcc_pending_events_total 0",
		fmt.Sprintf(`etcd_network_known_peers{Local="%x",Remote="%[1]x"} 1`, uint64(testMember)),
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	must(pb.NewMaintenanceClient(s.conn(t)).Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: uint64(testMember), Alarm: pb.AlarmType_NOSPACE}))
	s.awaitMetric(t, fmt.Sprintf(`etcd_debugging_server_alarms{alarm_type="NOSPACE",server_id="%x"} 1`, uint64(testMember)))
	backend.lead(consensus.NoMember)
	s.awaitMetric(t, "etcd_server_has_leader 0")
	backend.lead(testMember)
	s.awaitMetric(t, "etcd_server_leader_changes_seen_total 2")
}
