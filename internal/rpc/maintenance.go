package rpc

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
)

// maintenanceService is etcd's Maintenance service.
type maintenanceService struct {
	pb.UnsafeMaintenanceServer
	*shared
}

// Alarm lists, raises or disarms alarms. Listing is a linearizable read.
func (m *maintenanceService) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	permitted := m.access.Root
	if r.Action == pb.AlarmRequest_GET {
		permitted = m.access.User
	}
	if err := permitted(ctx); err != nil {
		return nil, err
	}
	response := &pb.AlarmResponse{}
	kind, known, err := m.checkAlarm(r)
	if err != nil {
		return nil, err
	}
	switch r.Action {
	case pb.AlarmRequest_GET:
		if err := m.readIndex(ctx); err != nil {
			return nil, err
		}
		for _, alarm := range m.alarmsHere() {
			if known && (kind == kv.AlarmNone || kind == alarm.Kind) {
				response.Alarms = append(response.Alarms, alarmMessage(alarm))
			}
		}
	case pb.AlarmRequest_ACTIVATE, pb.AlarmRequest_DEACTIVATE:
		if kind == kv.AlarmNone {
			break
		}
		result, err := m.propose(ctx, &kv.Command{Alarm: &kv.AlarmOp{
			Activate: r.Action == pb.AlarmRequest_ACTIVATE, Member: r.MemberID, Kind: kind,
		}})
		if err != nil {
			return nil, err
		}
		for _, alarm := range result.Alarms {
			response.Alarms = append(response.Alarms, alarmMessage(alarm))
		}
	}
	response.Header = m.headerNow().Message()
	return response, nil
}

var (
	errUnknownMethod  = status.Error(codes.Unknown, "etcdserver: unknown method")
	errUnknownAlarm   = status.Error(codes.InvalidArgument, "etcdserver: unknown alarm")
	errUnknownAction  = status.Error(codes.InvalidArgument, "etcdserver: unknown alarm action")
	errTooManyCorrupt = status.Error(codes.FailedPrecondition,
		"etcdserver: a majority of the voters cannot be marked corrupt: nothing would be served; `etcdctl alarm list` shows "+
			"who is marked, `etcdctl alarm disarm` ends it")
)

// checkAlarm returns the kind of a request's alarm, and false if there are no alarms of the kind that it names. It refuses to
// raise one of those, or one for a process that is not a member: every member would keep it until it is disarmed.
func (m *maintenanceService) checkAlarm(r *pb.AlarmRequest) (kind kv.AlarmKind, known bool, err error) {
	switch r.Alarm {
	case pb.AlarmType_NONE, pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT:
		kind, known = kv.AlarmKind(r.Alarm), true
	}
	switch r.Action {
	case pb.AlarmRequest_GET, pb.AlarmRequest_DEACTIVATE:
		return kind, known, nil
	case pb.AlarmRequest_ACTIVATE:
	default: // this ends the process of a real etcd
		return kind, known, errUnknownAction
	}
	config := m.options.Member.Status().Config
	switch {
	case !known:
		return kind, known, errUnknownAlarm
	case r.MemberID != 0 && !config.Contains(consensus.MemberID(r.MemberID)):
		return kind, known, rpctypes.ErrGRPCMemberNotFound
	case kind == kv.AlarmCorrupt && m.marksTooMany(consensus.MemberID(r.MemberID), config.Voters):
		return kind, known, errTooManyCorrupt
	}
	return kind, known, nil
}

// marksTooMany reports whether a majority of the voters would be marked corrupt with id: the cluster would serve nothing.
// Members that compare themselves never mark a majority.
func (m *maintenanceService) marksTooMany(id consensus.MemberID, voters []consensus.MemberID) bool {
	if !slices.Contains(voters, id) {
		return false
	}
	marked := map[consensus.MemberID]bool{id: true}
	for _, alarm := range m.alarms() {
		if member := consensus.MemberID(alarm.Member); alarm.Kind == kv.AlarmCorrupt && slices.Contains(voters, member) {
			marked[member] = true
		}
	}
	return len(voters)-len(marked) < quorum.Majority(len(voters))
}

// alarmsHere are the alarms of the cluster and, while the disk of this member is nearly full, NOSPACE for it. That one is not
// stored: it forbids other members nothing, cannot be disarmed, and ends when there is room.
func (m *maintenanceService) alarmsHere() []kv.Alarm {
	alarms, own := m.alarms(), kv.Alarm{Member: m.self, Kind: kv.AlarmNoSpace}
	if m.options.LowDisk() != "" && !slices.Contains(alarms, own) {
		alarms = append(slices.Clone(alarms), own)
	}
	return alarms
}

func alarmMessage(alarm kv.Alarm) *pb.AlarmMember {
	return &pb.AlarmMember{MemberID: alarm.Member, Alarm: pb.AlarmType(alarm.Kind)}
}

// ownRowsBytes is the approximate size of a store without keys: the configuration, the members, positions in the log.
const ownRowsBytes = 512

// Status describes this member. It needs neither a leader nor a quorum.
func (m *maintenanceService) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	member := m.options.Member
	status := member.Status()
	machine, release := member.Machine()
	defer release()
	store := machine.Store()
	size := store.Size()
	response := &pb.StatusResponse{
		Header:           m.headerAt(store.Revision()).Message(),
		Version:          m.options.Version.Server,
		StorageVersion:   m.options.Version.Storage,
		DbSize:           max(size.DiskBytes+size.UnflushedBytes, size.LogicalBytes+ownRowsBytes),
		DbSizeInUse:      size.LogicalBytes + ownRowsBytes,
		DbSizeQuota:      m.options.ReportedQuotaBytes,
		Leader:           uint64(member.Leader()),
		RaftIndex:        uint64(status.Commit),
		RaftAppliedIndex: uint64(machine.Applied().Index),
		RaftTerm:         uint64(member.Term()),
		IsLearner:        member.Learner(),
		DowngradeInfo:    downgradeInfo(machine),
	}
	if member.Leader() == consensus.NoMember {
		response.Errors = append(response.Errors, rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader))
	}
	if err := m.options.Superseded(); err != nil {
		response.Errors = append(response.Errors, err.Error())
	} else {
		response.Errors = append(response.Errors, m.options.Troubles()...)
	}
	for _, alarm := range machine.Alarms() {
		response.Errors = append(response.Errors, alarmMessage(alarm).String())
	}
	return response, nil
}

// Defragment frees disk space, if the store has some to free.
func (m *maintenanceService) Defragment(ctx context.Context, _ *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	leave, err := m.bounds.scans.Enter(ctx, admission.CallerOf(ctx).Host, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	done := m.timings.Defragment.Begin()
	if m.options.Defragment != nil {
		err = m.options.Defragment(ctx)
	}
	took := done(err)
	if err != nil {
		return nil, err
	}
	m.options.Logger.InfoContext(ctx, "defragmented", "took", took)
	return &pb.DefragmentResponse{}, nil
}

// Hash is a checksum over everything this member stores. It differs between members whose compactions have progressed
// differently.
func (m *maintenanceService) Hash(ctx context.Context, _ *pb.HashRequest) (*pb.HashResponse, error) {
	leave, err := m.bounds.scans.Enter(ctx, admission.CallerOf(ctx).Host, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	machine, release := m.options.Member.Machine()
	defer release()
	revision := machine.Store().Revision()
	done := m.timings.Hash.Begin()
	hash, err := machine.Store().Hash()
	done(err)
	if err != nil {
		return nil, err
	}
	return &pb.HashResponse{Header: m.headerAt(revision).Message(), Hash: hash}, nil
}

// emptyHash is the answer for a history without versions: JSON leaves zeros out, and zero would look like a missing answer. The
// store's own checksum, which members compare, is zero then.
const emptyHash = 0x6b6579

// HashKV is a checksum over the history up to a revision, equal on all members with the same history.
func (m *maintenanceService) HashKV(ctx context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	leave, err := m.bounds.scans.Enter(ctx, admission.CallerOf(ctx).Host, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	machine, release := m.options.Member.Machine()
	defer release()
	done := m.timings.HashKV.Begin()
	hash, compacted, current, err := machine.Store().HashKV(kv.Revision(r.Revision))
	done(err)
	if err != nil {
		return nil, err
	}
	at := r.Revision
	if at <= 0 {
		at = int64(current)
	}
	if hash == 0 {
		hash = emptyHash
	}
	return &pb.HashKVResponse{
		Header: m.headerAt(current).Message(), Hash: hash, CompactRevision: int64(compacted), HashRevision: at,
	}, nil
}

// MoveLeader hands leadership to another voter. Only the leader answers, and the answer has no header.
func (m *maintenanceService) MoveLeader(
	ctx context.Context, r *pb.MoveLeaderRequest,
) (*pb.MoveLeaderResponse, error) {
	if m.options.Member.Leader() != m.options.Member.ID() {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	leave, err := m.bounds.moves.Enter(ctx, admission.CallerOf(ctx).Host, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := m.options.Member.TransferLeadership(ctx, consensus.MemberID(r.TargetID)); err != nil {
		return nil, err
	}
	return &pb.MoveLeaderResponse{}, nil
}
