package rpc

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// Downgrade prepares the way back to a former release of this server, which is there until the feature level has risen to one
// that the release does not know. VALIDATE says whether it is; ENABLE holds the level, and keeps the policy that stood before;
// CANCEL puts that policy back, and so does the leader once all members run the release. The version names a release of this
// server, such as 1.0: no etcd reads its data.
//
// The errors are etcd's: InvalidArgument for a version that is none or no target, FailedPrecondition while a downgrade is
// under way, and once the level has risen. Aborted: another operator was first.
func (m *maintenanceService) Downgrade(
	ctx context.Context, r *pb.DowngradeRequest,
) (*pb.DowngradeResponse, error) {
	var err error
	switch r.Action {
	case pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE:
		err = m.downgrade(ctx, r.Version, r.Action == pb.DowngradeRequest_ENABLE)
	case pb.DowngradeRequest_CANCEL:
		err = m.cancelDowngrade(ctx)
	default:
		err = errUnknownMethod
	}
	if err != nil {
		return nil, err
	}
	return &pb.DowngradeResponse{Header: m.headerNow().Message(), Version: majorMinor(m.options.Version.Cluster)}, nil
}

// downgrade checks a target, and holds the level for it if that is wanted.
func (m *maintenanceService) downgrade(ctx context.Context, version string, enable bool) error {
	target, ok := level.ParseRelease(version)
	if !ok {
		return rpctypes.ErrGRPCWrongDowngradeVersionFormat
	}
	if err := m.readIndex(ctx); err != nil {
		return err
	}
	of, err := m.mayDowngrade(target)
	if err != nil || !enable {
		return err
	}
	hold := level.Policy{Kind: level.PolicyHold}
	_, err = m.propose(ctx, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: hold, Target: target, Of: of}})
	if errors.Is(err, kv.ErrBadCommand) {
		return errUpgradeRaced
	}
	if err == nil {
		m.options.Logger.InfoContext(ctx, "a downgrade begins: the feature level is held until it ends or is cancelled",
			"to", target.String())
	}
	return err
}

// mayDowngrade returns the members of now, if the cluster may go back to a release.
func (m *maintenanceService) mayDowngrade(target level.Release) (of kv.LevelView, err error) {
	machine, release := m.options.Member.Machine()
	defer release()
	rise := machine.Rise() // first: if the level rises meanwhile, its generation is another one
	if err := m.checkTarget(machine, target); err != nil {
		return of, err
	}
	switch {
	case !rise.Target.IsZero():
		return of, rpctypes.ErrGRPCDowngradeInProcess
	case !rise.Policy.Valid():
		return of, status.Error(codes.FailedPrecondition, "the cluster has no policy of feature levels yet, its leader sets "+
			"one in a moment: try again")
	}
	of = machine.LevelView()
	of.Generation = rise.Generation
	return of, nil
}

// checkTarget refuses a release that may not come back. A version of etcd that etcd itself would refuse gets etcd's words.
func (m *maintenanceService) checkTarget(machine *apply.Machine, target level.Release) error {
	etcd, _ := level.ParseRelease(m.options.Version.Cluster)
	oneBelow := level.Release{Major: etcd.Major, Minor: etcd.Minor - 1}
	newest, build := newestRelease(machine)
	knows, known := target.Knows()
	active := machine.ActiveLevel()
	switch {
	case target == oneBelow:
		return invalidTarget("no etcd reads the data of this server: a snapshot, or `quorate mirror`, brings it into a "+
			"new cluster of etcd. A target is a release of this server, such as 1.0. %s", wayBack(machine))
	case target.Major >= etcd.Major:
		return rpctypes.ErrGRPCInvalidDowngradeTargetVersion
	case !known:
		return invalidTarget("there is no release %v of this server. %s", target, wayBack(machine))
	case target.Compare(newest) >= 0:
		return invalidTarget("release %v is not older than what members run (%s): a downgrade goes to an earlier release. %s",
			target, build, wayBack(machine))
	case knows < active:
		return status.Errorf(codes.FailedPrecondition, "etcdserver: release %v knows feature level %d at most, and the "+
			"cluster has risen to %d: it cannot return. The way back is a snapshot or `quorate mirror`, into a new cluster "+
			"of that build", target, knows, active)
	}
	return nil
}

func invalidTarget(why string, args ...any) error {
	e := status.Convert(rpctypes.ErrGRPCInvalidDowngradeTargetVersion)
	return status.Error(e.Code(), e.Message()+": "+fmt.Sprintf(why, args...))
}

// newestRelease returns the newest release that a member runs, and its build.
func newestRelease(machine *apply.Machine) (newest level.Release, build string) {
	config, _ := machine.Config()
	for _, id := range config.IDs() {
		published, _ := machine.Published(id)
		if r, ok := level.ParseRelease(published.Build); ok && (build == "" || r.Compare(newest) > 0) {
			newest, build = r, published.Build
		}
	}
	return newest, build
}

// wayBack says which level is active, and until when a former build may return.
func wayBack(machine *apply.Machine) string {
	active, common, rise := machine.ActiveLevel(), machine.CommonLevel(), machine.Rise()
	says := fmt.Sprintf("Feature level %d is active, and a build that knows it may return", active)
	switch {
	case common > active && rise.Policy.Kind == level.PolicyHold:
		says += fmt.Sprintf(" until `quorate upgrade finalize` raises level %d", common)
	case common > active:
		says += fmt.Sprintf(" until level %d rises by the policy %s; `quorate upgrade hold` keeps it down", common, rise.Policy)
	case len(machine.HeldBack(machine.OwnLevel())) > 0 && machine.OwnLevel() > active:
		says += fmt.Sprintf(": not all members know level %d yet", machine.OwnLevel())
	}
	return says + ". See `quorate upgrade status`"
}

// cancelDowngrade puts the policy back that stood before a downgrade. Without one it changes nothing, as in etcd.
func (m *maintenanceService) cancelDowngrade(ctx context.Context) error {
	if err := m.readIndex(ctx); err != nil {
		return err
	}
	machine, release := m.options.Member.Machine()
	rise, of := machine.Rise(), machine.LevelView()
	release()
	if rise.Target.IsZero() {
		return nil
	}
	of.Generation = rise.Generation
	_, err := m.propose(ctx, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: rise.Before, Of: of}})
	if errors.Is(err, kv.ErrBadCommand) {
		return errUpgradeRaced
	}
	if err == nil {
		m.options.Logger.InfoContext(ctx, "a downgrade is cancelled", "policy", rise.Before.String())
	}
	return err
}

// downgradeInfo is the downgrade that is under way, as this member has applied it.
func downgradeInfo(machine *apply.Machine) *pb.DowngradeInfo {
	target := machine.Rise().Target
	if target.IsZero() {
		return &pb.DowngradeInfo{}
	}
	return &pb.DowngradeInfo{Enabled: true, TargetVersion: target.String() + ".0"}
}
