package members

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// joinWithin is how long a newcomer may take to start, before the cluster takes it back.
const joinWithin = 10 * time.Minute

// Ask asks the cluster for the job of an action, in the configuration that the view has: another one refuses it, and so a
// change that was made already is not made twice. While a job is under way, the same one is that job.
func (g *Group) Ask(ctx context.Context, v *View, a decide.Action, peerURL string) error {
	if a.Kind == decide.Cancel {
		return g.any(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := quoratepb.NewMembershipClient(conn).CancelJob(ctx, &quoratepb.CancelJobRequest{Id: a.ID})
			return err
		})
	}
	spec := &quoratepb.ChangeSpec{Expected: v.Described.GetConfig()}
	newcomer := []*quoratepb.Newcomer{{Name: a.Member, PeerUrls: []string{peerURL}}}
	switch a.Kind {
	case decide.Add:
		spec.Add, spec.JoinWithinMs = newcomer, joinWithin.Milliseconds()
	case decide.Remove:
		spec.Remove = []uint64{a.ID}
	case decide.Replace:
		spec.Kind, spec.Add, spec.Remove, spec.JoinWithinMs = "replace", newcomer, []uint64{a.ID}, joinWithin.Milliseconds()
	case decide.Cordon:
		spec.Cordon = []uint64{a.ID}
	case decide.Uncordon:
		spec.Uncordon = []uint64{a.ID}
	default:
		return fmt.Errorf("the action %s is no job of the cluster", a.Kind)
	}
	for _, job := range v.Jobs {
		spec.After = append(spec.After, job.GetId())
	}
	request := &quoratepb.StartRequest{Spec: spec}
	return g.any(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := quoratepb.NewMembershipClient(conn).Start(ctx, request)
		return err
	})
}
