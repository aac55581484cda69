package pages_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/pages"
)

// faulty is a member that answers, and one of whose calls has a fault.
type faulty struct {
	consoletest.Conn
	method string
}

func (f faulty) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if method == f.method {
		panic("a fault in a call of " + method)
	}
	return f.Conn.Invoke(ctx, method, args, reply, options...)
}

func (f faulty) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if method != f.method {
		return f.Conn.NewStream(ctx, desc, method, options...)
	}
	return faultyStream{}, nil
}

type faultyStream struct{}

func (faultyStream) Header() (metadata.MD, error) { return nil, nil }
func (faultyStream) Trailer() metadata.MD         { return nil }
func (faultyStream) CloseSend() error             { return nil }
func (faultyStream) Context() context.Context     { return context.Background() }
func (faultyStream) SendMsg(any) error            { return nil }
func (faultyStream) RecvMsg(any) error            { panic("a fault in a stream") }

// answers are those of a member of a cluster, to calls of pages.
func answers() consoletest.Conn {
	all := consoletest.Healthy(3)
	return consoletest.Conn{
		"/etcdserverpb.KV/Range":                     &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 9}},
		"/etcdserverpb.Auth/AuthStatus":              &pb.AuthStatusResponse{},
		"/etcdserverpb.Auth/UserList":                &pb.AuthUserListResponse{Users: []string{"alice", "bob"}},
		"/etcdserverpb.Auth/UserGet":                 &pb.AuthUserGetResponse{Roles: []string{"pods"}},
		"/etcdserverpb.Auth/RoleList":                &pb.AuthRoleListResponse{Roles: []string{"pods"}},
		"/etcdserverpb.Auth/RoleGet":                 &pb.AuthRoleGetResponse{},
		"/etcdserverpb.Lease/LeaseLeases":            &pb.LeaseLeasesResponse{Leases: []*pb.LeaseStatus{{ID: 7}}},
		"/etcdserverpb.Lease/LeaseTimeToLive":        &pb.LeaseTimeToLiveResponse{ID: 7, TTL: 5, GrantedTTL: 9},
		"/etcdserverpb.Cluster/MemberList":           &pb.MemberListResponse{},
		quoratepb.Doctor_Collect_FullMethodName:      all,
		quoratepb.Membership_Describe_FullMethodName: consoletest.Described(all),
		quoratepb.Membership_ListJobs_FullMethodName: &quoratepb.ListJobsResponse{Jobs: []*quoratepb.Job{{Id: 0x3f2a,
			State: "running", Phase: "start", Phases: []string{"join", "start"}, Spec: &quoratepb.ChangeSpec{Kind: "replace"}}}},
		quoratepb.Membership_Plan_FullMethodName:  &quoratepb.PlanResponse{},
		quoratepb.Upgrade_Status_FullMethodName:   &quoratepb.UpgradeStatus{},
		quoratepb.Top_Get_FullMethodName:          &quoratepb.TopAnswer{},
		quoratepb.History_Versions_FullMethodName: &quoratepb.VersionsAnswer{Revision: 9, FirstRevision: 1},
		quoratepb.History_Deleted_FullMethodName:  &quoratepb.DeletedAnswer{Revision: 9, FirstRevision: 1},
		quoratepb.History_Changes_FullMethodName:  &quoratepb.ChangesAnswer{Revision: 9, FirstRevision: 1},
		quoratepb.Limits_ListLimits_FullMethodName: &quoratepb.ListLimitsResponse{Limits: []*quoratepb.LimitState{
			{Limit: &quoratepb.Limit{Name: "m4", Prefix: []byte("/a/"), QuotaKeys: proto.Int64(9)}, UsedKeys: 3}}},
		quoratepb.Audit_Policy_FullMethodName:      &quoratepb.AuditPolicy{Policy: `{"rules": [{"level": "metadata"}]}`, Version: 1},
		quoratepb.Audit_Heads_FullMethodName:       &quoratepb.AuditHeads{Heads: []*quoratepb.AuditHead{{Member: 1, Sequence: 9}}},
		quoratepb.Audit_Records_FullMethodName:     &quoratepb.AuditRecords{Member: 1, Output: "audit.log"},
		quoratepb.Encryption_Status_FullMethodName: &quoratepb.EncryptionStatus{Keys: []*quoratepb.DataKey{{Id: "a", Active: true}}},
	}
}

// Ensure that a fault in any call that a page makes, in whichever goroutine, ends the section and nothing else.
func TestAll_panics(t *testing.T) {
	const query = "key=a&id=3f2a&prefix=a&from=1&member=1&verb=add&name=m4&peer-urls=http://m4:2380&do=delete-role&role=pods&user=alice"
	const fault = "This section cannot be shown"
	conn := answers()
	methods := append(slices.Sorted(maps.Keys(conn)), "/etcdserverpb.KV/RangeStream", "/etcdserverpb.Watch/Watch")
	for _, method := range methods {
		faults := 0
		for _, p := range pages.All() {
			for _, target := range []string{p.Path, p.Path + "?" + query} {
				code, body := consoletest.Show(t, faulty{conn, method}, p, target)
				if code != http.StatusOK && code != http.StatusNotFound {
					t.Errorf("%s, a fault of %s: %d", target, method, code)
				}
				faults += strings.Count(body, fault)
			}
		}
		if faults == 0 {
			t.Errorf("no page has shown a fault of %s", method)
		}
	}
}
