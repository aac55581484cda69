package console

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// readOnly passes calls that read, and refuses all others.
type readOnly struct{ conn grpc.ClientConnInterface }

// reading are the methods that change nothing. Alarm both reads and writes: its request says which.
var reading = map[string]bool{
	"/etcdserverpb.KV/Range":                     true,
	"/etcdserverpb.KV/RangeStream":               true,
	"/etcdserverpb.Watch/Watch":                  true,
	"/etcdserverpb.Lease/LeaseTimeToLive":        true,
	"/etcdserverpb.Lease/LeaseLeases":            true,
	"/etcdserverpb.Cluster/MemberList":           true,
	"/etcdserverpb.Maintenance/Status":           true,
	"/etcdserverpb.Auth/AuthStatus":              true,
	"/etcdserverpb.Auth/UserGet":                 true,
	"/etcdserverpb.Auth/UserList":                true,
	"/etcdserverpb.Auth/RoleGet":                 true,
	"/etcdserverpb.Auth/RoleList":                true,
	quoratepb.Membership_Describe_FullMethodName: true,
	quoratepb.Membership_Plan_FullMethodName:     true,
	quoratepb.Membership_ListJobs_FullMethodName: true,
	quoratepb.Membership_Watch_FullMethodName:    true,
	quoratepb.Tokens_ListTokens_FullMethodName:   true,
	quoratepb.Upgrade_Status_FullMethodName:      true,
	quoratepb.Backup_Status_FullMethodName:       true,
	quoratepb.Doctor_Observe_FullMethodName:      true,
	quoratepb.Doctor_Collect_FullMethodName:      true,
	quoratepb.Top_Get_FullMethodName:             true,
	quoratepb.History_Versions_FullMethodName:    true,
	quoratepb.History_Deleted_FullMethodName:     true,
	quoratepb.History_RevisionAt_FullMethodName:  true,
	quoratepb.History_Changes_FullMethodName:     true,
	quoratepb.Limits_ListLimits_FullMethodName:   true,
	quoratepb.Audit_Policy_FullMethodName:        true,
	quoratepb.Audit_Heads_FullMethodName:         true,
	quoratepb.Audit_Records_FullMethodName:       true,
	quoratepb.Encryption_Status_FullMethodName:   true,
}

// Invoke implements grpc.ClientConnInterface.
func (c readOnly) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if !reads(method, args) {
		return errWrites(method)
	}
	return c.conn.Invoke(ctx, method, args, reply, options...)
}

// NewStream implements grpc.ClientConnInterface.
func (c readOnly) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if !reads(method, nil) {
		return nil, errWrites(method)
	}
	return c.conn.NewStream(ctx, desc, method, options...)
}

func reads(method string, args any) bool {
	if alarm, ok := args.(*pb.AlarmRequest); ok && method == "/etcdserverpb.Maintenance/Alarm" {
		return alarm.GetAction() == pb.AlarmRequest_GET
	}
	return reading[method]
}

func errWrites(method string) error {
	return status.Errorf(codes.PermissionDenied, "quorate: a page of the console reads, and %s may write", method)
}
