package autopilot

import (
	"context"
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// errMovedUnknown: the configuration in force here may be undone, and then have the member again, where it was.
var errMovedUnknown = errors.New("autopilot: the configuration of the leader does not have the member that says that it moved")

// Moved updates the address of a member that says that it moved, if it is found at the new one and not at the old one: a
// word alone moves nobody.
func (r *Requests) Moved(ctx context.Context, id consensus.MemberID, urls []string) error {
	spec := membership.Spec{Update: []consensus.Member{{ID: id, PeerURLs: urls}}}
	if err := Valid(&spec); err != nil {
		return err
	}
	config := r.addresses.finder.Config()
	known, ok := config.Member(id)
	if !ok {
		return errMovedUnknown
	}
	if membership.SameURLs(known.PeerURLs, urls) {
		return nil
	}
	if presence, _ := r.addresses.seek(ctx, id, known.PeerURLs); presence == transport.Present {
		return nil
	}
	if err := r.giveBack(ctx, &config, id, urls); err != nil {
		return err
	}
	request := consensus.ChangeRequest{Steps: r.addresses.displaced(ctx, &config, spec.Update[0])}
	if err := r.addresses.Confirm(ctx, &request, membership.Cautious); err != nil {
		return err
	}
	if err := r.cluster.Change(ctx, &request); err != nil {
		return err
	}
	for i := range request.Steps {
		m := &request.Steps[i].Member
		was, _ := config.Member(m.ID)
		r.addresses.logger.Info("a member has moved", "peer", m.ID.String(), "from", was.PeerURLs, "to", m.PeerURLs)
	}
	return nil
}

// displaced returns the update of a member that has moved, and those of members whose URLs it has now, if they are found at
// URLs of the configuration: members that have taken each other's place cannot be updated one after the other. Of members that
// are found nowhere it has none, and the change is refused.
func (a *Addresses) displaced(ctx context.Context, config *consensus.Config, moved consensus.Member) []consensus.ChangeStep {
	var all []string
	for i := range config.Members {
		all = append(all, config.Members[i].DialURLs()...)
	}
	steps := []consensus.ChangeStep{{Kind: consensus.ChangeUpdate, Member: moved}}
	for i := 0; i < len(steps); i++ {
		for j := range config.Members {
			other := &config.Members[j]
			if !shareURL(other.DialURLs(), steps[i].Member.PeerURLs) || updates(steps, other.ID) {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(all), func(url string) bool { return taken(steps, url) })
			if at := a.where(ctx, other.ID, left); len(at) > 0 {
				steps = append(steps, consensus.ChangeStep{Kind: consensus.ChangeUpdate,
					Member: consensus.Member{ID: other.ID, PeerURLs: at}})
			}
		}
	}
	return steps
}

func shareURL(a, b []string) bool {
	return slices.ContainsFunc(a, func(url string) bool { return slices.Contains(b, url) })
}

func updates(steps []consensus.ChangeStep, id consensus.MemberID) bool {
	return slices.ContainsFunc(steps, func(s consensus.ChangeStep) bool { return s.Member.ID == id })
}

func taken(steps []consensus.ChangeStep, url string) bool {
	return slices.ContainsFunc(steps, func(s consensus.ChangeStep) bool { return slices.Contains(s.Member.PeerURLs, url) })
}

// giveBack restores the former URLs of each member whose URLs are really those of the member id. A mistyped update may have
// assigned them; until it is undone, id cannot have its own URLs.
func (r *Requests) giveBack(ctx context.Context, config *consensus.Config, id consensus.MemberID, urls []string) error {
	if presence, _ := r.addresses.seek(ctx, id, urls); presence != transport.Present {
		return nil // a word alone takes nobody's URLs
	}
	for i := range config.Members {
		other := &config.Members[i]
		if other.ID == id || !shareURL(other.PeerURLs, urls) || len(other.FormerURLs) == 0 {
			continue
		}
		if presence, _ := r.addresses.seek(ctx, other.ID, other.PeerURLs); presence == transport.Present {
			continue
		}
		if err := r.restore(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

// restore gives a member those of its former URLs back at which it answers.
func (r *Requests) restore(ctx context.Context, known *consensus.Member) error {
	at := r.addresses.where(ctx, known.ID, known.FormerURLs)
	if len(at) == 0 {
		return nil
	}
	back := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: known.ID, PeerURLs: at})
	if err := r.cluster.Change(ctx, &back); err != nil {
		return err
	}
	r.addresses.logger.Warn("the new peer URLs of a member lead to another process, and it answers at its former ones: those "+
		"were restored. Start it with --initial-advertise-peer-urls where it is to be, or correct the update", "peer",
		known.ID.String(), "refused-urls", known.PeerURLs, "urls", at)
	return nil
}

// Telling is how far a member is with telling where it was started. That the leader has heard it does not show that the
// configuration will say so: a change may be undone, or a member be found at its former URL for a while. So it tells again when
// its URLs in the configuration change, and from time to time as long as they are not those where it was started.
type Telling struct {
	told  bool
	had   []string // what the configuration had of it then
	looks int      // since then
}

// TellAgain is after how many looks a member tells again that the configuration has elsewhere.
const TellAgain = 60

// Look notes that the member looks at the configuration once more, and returns whether it has to tell.
func (t *Telling) Look(config *consensus.Config, self consensus.MemberID) bool {
	t.looks++
	known, _ := config.Member(self)
	return !t.told || !membership.SameURLs(known.PeerURLs, t.had) || t.looks%TellAgain == 0
}

// Told notes that it has told, or that the configuration says so already.
func (t *Telling) Told(config *consensus.Config, self consensus.MemberID) {
	known, _ := config.Member(self)
	*t = Telling{told: true, had: known.PeerURLs}
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

// SettleAddresses looks for members that nobody had found when their URLs were changed, one after the other. The former URLs
// of one that is found at its new ones are dropped. One whose new URLs lead to somebody else gets its former ones back, if it
// answers there: else nobody could have those URLs to whom they belong.
func (r *Requests) SettleAddresses(ctx context.Context) {
	config := r.addresses.finder.Config()
	for i := range config.Members {
		if known := &config.Members[i]; len(known.FormerURLs) > 0 {
			r.settleAddress(ctx, known)
		}
	}
}

func (r *Requests) settleAddress(ctx context.Context, known *consensus.Member) {
	ctx, cancel := context.WithTimeout(ctx, StepPatience)
	defer cancel()
	presence, _ := r.addresses.seek(ctx, known.ID, known.PeerURLs)
	switch {
	case presence.Misleads():
		_ = r.restore(ctx, known) // it is tried again
	case presence == transport.Present:
		request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: known.ID, PeerURLs: known.PeerURLs})
		if r.cluster.Change(ctx, &request) == nil {
			r.addresses.logger.Info("found a member at its new peer URLs", "peer", known.ID.String())
		}
	}
}
