package console

import (
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that each method that pages may call is one that a member serves, and that those whose names say that they change
// something are not among them.
func TestReadOnly(t *testing.T) {
	served := map[string]bool{}
	for _, desc := range []*grpc.ServiceDesc{
		&pb.KV_ServiceDesc, &pb.Watch_ServiceDesc, &pb.Lease_ServiceDesc, &pb.Cluster_ServiceDesc, &pb.Maintenance_ServiceDesc,
		&pb.Auth_ServiceDesc, &quoratepb.Membership_ServiceDesc, &quoratepb.Tokens_ServiceDesc, &quoratepb.Upgrade_ServiceDesc,
		&quoratepb.Doctor_ServiceDesc, &quoratepb.Top_ServiceDesc, &quoratepb.Writer_ServiceDesc,
		&quoratepb.History_ServiceDesc, &quoratepb.Limits_ServiceDesc, &quoratepb.Audit_ServiceDesc, &quoratepb.Encryption_ServiceDesc,
		&quoratepb.Backup_ServiceDesc,
	} {
		for _, m := range desc.Methods {
			served["/"+desc.ServiceName+"/"+m.MethodName] = true
		}
		for _, s := range desc.Streams {
			served["/"+desc.ServiceName+"/"+s.StreamName] = true
		}
	}
	for method := range reading {
		if !served[method] {
			t.Errorf("no member serves %s", method)
		}
	}
	for method := range served {
		name := method[strings.LastIndex(method, "/")+1:]
		for _, word := range []string{
			"Put", "Delete", "Txn", "Compact", "Grant", "Revoke", "KeepAlive", "Add", "Remove", "Update", "Promote", "Enable", "Disable",
			"Change", "Start", "Cancel", "Join", "Create", "Set", "Finalize", "Propose", "Defragment", "Move", "Downgrade", "Snapshot",
			"Authenticate", "Hash", "Stop", "Rotate",
		} {
			if strings.Contains(strings.NewReplacer("Deleted", "", "Changes", "").Replace(name), word) && reads(method, nil) {
				t.Errorf("a page may call %s", method)
			}
		}
	}
	alarm := "/etcdserverpb.Maintenance/Alarm"
	if !reads(alarm, &pb.AlarmRequest{}) || reads(alarm, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE}) || reads(alarm, nil) {
		t.Error("a page may see alarms, and not change them")
	}
}

// Ensure that sections that are kept stay within their bound, and that those used last stay.
func TestMemory_bound(t *testing.T) {
	m := newMemory(10 << 10)
	for i := range 100 {
		key := sectionKey{who: "a", url: strings.Repeat("u", i), id: "s"}
		m.mu.Lock()
		m.keep(key, make([]byte, 1<<10))
		m.mu.Unlock()
		if _, _, ok := m.last(key); !ok {
			t.Fatal("the last section is not kept")
		}
		if m.bytes > m.limit || len(m.of) != m.recent.Len() {
			t.Fatalf("%d bytes are kept, %d and %d sections", m.bytes, len(m.of), m.recent.Len())
		}
	}
	m.mu.Lock()
	m.keep(sectionKey{id: "large"}, make([]byte, 11<<10))
	m.mu.Unlock()
	if _, _, ok := m.last(sectionKey{id: "large"}); ok {
		t.Error("a section is kept that is larger than the bound")
	}
}
