package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// upgradeService is the native Upgrade service: when the active feature level rises. The leader of package member raises it, by
// the policy that is set here.
//
// Invariants:
//  1. Only root changes the policy or finalizes while authentication is enabled: the gate asks, and the state machine again.
//  2. A status is as new as the changes that were acknowledged before the call.
type upgradeService struct {
	quoratepb.UnsafeUpgradeServer
	*shared
}

// Status returns levels, policy and how far it is.
func (u *upgradeService) Status(ctx context.Context, _ *quoratepb.UpgradeStatusRequest) (*quoratepb.UpgradeStatus, error) {
	if err := u.readIndex(ctx); err != nil {
		return nil, err
	}
	machine, release := u.options.Member.Machine()
	answer := upgradeStatus(machine)
	release()
	if answer.GetCommon() > answer.GetActive() && answer.GetSoakSeconds() > 0 {
		ctx, cancel := context.WithTimeout(ctx, pausePatience)
		defer cancel()
		if why, err := u.options.Member.SoakPausedBy(ctx); err == nil {
			answer.PausedBy = why
		}
	}
	return answer, nil
}

// pausePatience bounds how long a status waits for the leader's word about a soak.
const pausePatience = 2 * time.Second

// SetPolicy changes the policy.
func (u *upgradeService) SetPolicy(ctx context.Context, r *quoratepb.SetLevelPolicyRequest) (*quoratepb.UpgradeStatus, error) {
	policy, err := level.ParsePolicy(r.GetPolicy())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "policy %.40q: %v", r.GetPolicy(), err)
	}
	if err := u.readIndex(ctx); err != nil {
		return nil, err
	}
	_, err = u.propose(ctx, &kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: policy, Of: u.levelView()}})
	if errors.Is(err, kv.ErrBadCommand) {
		err = errUpgradeRaced
	}
	if err != nil {
		return nil, err
	}
	u.options.Logger.InfoContext(ctx, "the policy by which the feature level rises is set", "policy", policy.String())
	return u.Status(ctx, nil)
}

// errUpgradeRaced refuses what was decided on what is not so any more: another operator, or a leader, was first.
var errUpgradeRaced = status.Error(codes.Aborted, "the policy, a soak or the members changed meanwhile: nothing happened, "+
	"look at `quorate upgrade status` and try again")

func (u *upgradeService) levelView() kv.LevelView {
	machine, release := u.options.Member.Machine()
	defer release()
	return machine.LevelView()
}

// Finalize raises the level.
func (u *upgradeService) Finalize(
	ctx context.Context, r *quoratepb.FinalizeUpgradeRequest,
) (*quoratepb.UpgradeStatus, error) {
	if err := u.readIndex(ctx); err != nil {
		return nil, err
	}
	to := level.Level(min(r.GetLevel(), uint32(^level.Level(0))))
	if err := u.finalize(ctx, to); err != nil {
		return nil, err
	}
	u.options.Logger.InfoContext(ctx, "an operator raised the feature level", "to", int(to))
	return u.Status(ctx, nil)
}

// finalizeAttempts is how often a raise is proposed that found a soak begun, or another configuration, under the same policy.
const finalizeAttempts = 4

// finalize raises the level under the policy of now. Under another one it does not: an operator may have said hold meanwhile.
func (u *upgradeService) finalize(ctx context.Context, to level.Level) error {
	first := u.rise()
	for range finalizeAttempts {
		// The policy is read before the members: nothing that was decided under another one changes anything.
		rise := u.rise()
		if rise.Policy != first.Policy || rise.Target != first.Target {
			break
		}
		of, err := u.mayFinalize(to)
		if err != nil {
			return err
		}
		of.Generation = rise.Generation
		_, err = u.propose(ctx, &kv.Command{Raise: &kv.RaiseOp{Level: to, Finalize: true, Of: of}})
		if !errors.Is(err, kv.ErrBadCommand) {
			return err
		}
		if err := u.readIndex(ctx); err != nil {
			return err
		}
	}
	return errUpgradeRaced
}

func (u *upgradeService) rise() level.Rise {
	machine, release := u.options.Member.Machine()
	defer release()
	return machine.Rise()
}

// mayFinalize returns the members of now, if they all know a level.
func (u *upgradeService) mayFinalize(to level.Level) (of kv.LevelView, err error) {
	machine, release := u.options.Member.Machine()
	defer release()
	if active := machine.ActiveLevel(); to <= active {
		return of, status.Errorf(codes.FailedPrecondition, "the cluster is at feature level %d already, and no level falls",
			active)
	}
	if by := machine.HeldBack(to); len(by) > 0 {
		return of, &level.HeldError{Needs: to, Active: machine.ActiveLevel(), By: by}
	}
	return machine.LevelView(), nil
}

func upgradeStatus(machine *apply.Machine) *quoratepb.UpgradeStatus {
	rise, common := machine.Rise(), machine.CommonLevel()
	answer := &quoratepb.UpgradeStatus{
		Active: uint32(machine.ActiveLevel()), Common: uint32(common), Policy: rise.Policy.String(), Enables: common.Enables(),
		SoakSeconds: rise.Policy.Seconds,
	}
	if !rise.Target.IsZero() {
		answer.DowngradeTo, answer.PolicyBefore = rise.Target.String(), rise.Before.String()
	}
	answer.SoakedSeconds = int64(rise.Soaked(common) / time.Second)
	config, _ := machine.Config()
	for _, id := range config.IDs() {
		if _, removed := machine.Removed(id); !removed {
			answer.Members = append(answer.Members, memberLevel(machine, &config, id))
		}
	}
	return answer
}

func memberLevel(machine *apply.Machine, config *consensus.Config, id consensus.MemberID) *quoratepb.MemberLevel {
	known, _ := config.Member(id)
	m := &quoratepb.MemberLevel{Id: uint64(id), Name: known.Name}
	if published, started := machine.Published(id); started {
		m.Name, m.Build, m.Level = published.Name, published.Build, uint32(published.Level)
	}
	return m
}
