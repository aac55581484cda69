package autopilot

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// Moved updates the address of a member that says that it moved, if it is found at the new one and not at the old one: a
// word alone moves nobody.
func (r *Requests) Moved(ctx context.Context, id consensus.MemberID, urls []string) error {
	spec := membership.Spec{Update: []consensus.Member{{ID: id, PeerURLs: urls}}}
	if err := Valid(&spec); err != nil {
		return err
	}
	config := r.addresses.finder.Config()
	known, ok := config.Member(id)
	if !ok || membership.SameURLs(known.PeerURLs, urls) {
		return nil
	}
	if presence, _ := r.addresses.seek(ctx, id, known.PeerURLs); presence == transport.Present {
		return nil
	}
	request := consensus.ChangeOne(consensus.ChangeUpdate, spec.Update[0])
	if err := r.addresses.Confirm(ctx, &request, membership.Cautious); err != nil {
		return err
	}
	if err := r.cluster.Change(ctx, &request); err != nil {
		return err
	}
	r.addresses.logger.Info("a member has moved", "peer", id.String(), "from", known.PeerURLs, "to", urls)
	return nil
}

// DropFormer drops the former URLs of members that are found at their present ones, one after the other.
func (r *Requests) DropFormer(ctx context.Context) {
	config := r.addresses.finder.Config()
	for i := range config.Members {
		if known := &config.Members[i]; len(known.FormerURLs) > 0 {
			r.dropFormer(ctx, known)
		}
	}
}

func (r *Requests) dropFormer(ctx context.Context, known *consensus.Member) {
	if presence, _ := r.addresses.seek(ctx, known.ID, known.PeerURLs); presence != transport.Present {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, StepPatience)
	defer cancel()
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: known.ID, PeerURLs: known.PeerURLs})
	if r.cluster.Change(ctx, &request) == nil {
		r.addresses.logger.Info("found a member at its new peer URLs", "peer", known.ID.String())
	}
}
