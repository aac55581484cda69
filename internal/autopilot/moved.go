package autopilot

import (
	"context"
	"slices"

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
	if err := r.giveBack(ctx, &config, id, urls); err != nil {
		return err
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

// giveBack restores the former URLs of members that do not answer at urls and do answer at the former ones. An update with a
// typo may have given urls to such a member, and would keep out the member id, which has moved there.
func (r *Requests) giveBack(ctx context.Context, config *consensus.Config, id consensus.MemberID, urls []string) error {
	if presence, _ := r.addresses.seek(ctx, id, urls); presence != transport.Present {
		return nil // a word alone takes nobody's URLs
	}
	for i := range config.Members {
		other := &config.Members[i]
		taken := slices.ContainsFunc(other.PeerURLs, func(url string) bool { return slices.Contains(urls, url) })
		if other.ID == id || !taken || len(other.FormerURLs) == 0 {
			continue
		}
		if presence, _ := r.addresses.seek(ctx, other.ID, other.PeerURLs); presence == transport.Present {
			continue
		}
		if presence, _ := r.addresses.seek(ctx, other.ID, other.FormerURLs); presence != transport.Present {
			continue
		}
		back := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: other.ID, PeerURLs: other.FormerURLs})
		if err := r.cluster.Change(ctx, &back); err != nil {
			return err
		}
		r.addresses.logger.Warn("a member had peer URLs at which another member runs: its former URLs were restored",
			"peer", other.ID.String(), "wrong", other.PeerURLs, "urls", other.FormerURLs)
	}
	return nil
}

// Announcement is what a member has to tell that was started at some peer URLs.
type Announcement struct {
	Done  bool   // the configuration says so already
	Wrong string // it does not answer there itself, says this in words: nobody is told
	Tells bool   // it has to: the leader alone can change the configuration
	// Ask are the members to tell, one after the other: nobody but they can be reached, for the leader does not know where to
	// send what it has to say.
	Ask   []consensus.MemberID
	Known consensus.Member // as the configuration has it
}

// Announce says what a member does that was started at these peer URLs. Until a configuration has it, it can do nothing.
func (a *Addresses) Announce(ctx context.Context, self consensus.MemberID, urls []string) (n Announcement) {
	config := a.finder.Config()
	known, ok := config.Member(self)
	n.Known, n.Done = known, ok && membership.SameURLs(known.PeerURLs, urls)
	if !ok || n.Done {
		return n
	}
	if n.Wrong = a.Wrong(ctx, self, urls); n.Wrong != "" {
		return n
	}
	n.Tells = true
	n.Ask = slices.DeleteFunc(config.IDs(), func(id consensus.MemberID) bool { return id == self })
	return n
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
