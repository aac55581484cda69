package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// errMovedUnknown: the configuration in force here may be undone, and then have the member again, where it was.
var errMovedUnknown = errors.New("autopilot: the configuration of the leader does not have the member that says that it moved")

// ErrOwnAddress is the answer to a leader that asks itself where it is: another member has to look.
var ErrOwnAddress = errors.New("autopilot: no member says of itself where others find it")

// LeaderLooks reports whether the leader looks for a member that says that it moved, and not the member that was told: the
// leader's own move is judged by the member that it tells.
func LeaderLooks(id, leader consensus.MemberID) bool { return id != leader }

// Moved updates the address of a member that says that it moved, if it is found at the new one and at none that the
// configuration has: a word alone moves no member. One that is where it was before an update that has not been confirmed has
// not moved yet: the update stays. One that is found where an update has it has moved: its former URLs are dropped.
func (r *Requests) Moved(ctx context.Context, id consensus.MemberID, urls []string) error {
	spec := membership.Spec{Update: []consensus.Member{{ID: id, PeerURLs: urls}}}
	if err := Valid(&spec); err != nil {
		return err
	}
	gave, err := r.move(ctx, id, urls, true)
	if gave {
		_, err = r.move(ctx, id, urls, false)
	}
	return err
}

// move is Moved. It returns true if it only gave other members back their former URLs first, and changed the configuration by
// that: what was seen before says nothing any more.
func (r *Requests) move(ctx context.Context, id consensus.MemberID, urls []string, mayGive bool) (gave bool, err error) {
	view, err := r.addresses.finder.Describe(ctx)
	if err != nil {
		return false, err
	}
	known, ok := view.Config.Member(id)
	if !ok {
		return false, errMovedUnknown
	}
	byItself := !r.addresses.mayConfirm(id)
	switch {
	case byItself && len(view.Config.Members) > 1:
		return false, ErrOwnAddress
	case membership.SameURLs(known.PeerURLs, urls):
		return false, r.look(ctx, &view, &known)
	case awaited(&known, urls):
		return false, nil
	}
	if byItself && within(urls, known.DialURLs()) {
		return false, nil
	}
	var empty string
	if !byItself {
		var there bool
		if there, empty, err = r.stillThere(ctx, &known); err != nil || there {
			return false, cmp.Or(err, r.look(ctx, &view, &known))
		}
	}
	at := r.addresses.where(ctx, id, urls)
	if mayGive {
		// Members that have taken each other's place cannot be updated one after the other: displaced.
		var refused *membership.RefusedError
		gave, err := r.giveBack(ctx, &view, id, at)
		if gave || err != nil && !(errors.As(err, &refused) && refused.Reason == consensus.ReasonPeerURLExists) {
			return gave, err
		}
	}
	if urls, err = own(&view.Config, id, urls, at); err != nil {
		return false, err
	}
	to, err := r.addresses.moveTo(ctx, &known, urls, at)
	if err != nil {
		return false, err
	}
	request := consensus.ChangeRequest{Expected: view.ID, Steps: r.addresses.displaced(ctx, &view.Config, to, urls)}
	if other := stillAt(&view.Config, request.Steps, to.FormerURLs); other != consensus.NoMember {
		return false, &membership.AddressError{Text: fmt.Sprintf("member %v was found at %s, where the configuration has %v, "+
			"which is found nowhere", id, strings.Join(at, ","), other)}
	}
	if err := r.addresses.Confirm(ctx, &request, membership.Cautious); err != nil {
		return false, err
	}
	if err := r.cluster.Change(ctx, &request); err != nil {
		return false, err
	}
	for i := range request.Steps {
		m := &request.Steps[i].Member
		was, _ := view.Config.Member(m.ID)
		r.addresses.logger.Info("a member has moved", "peer", m.ID.String(), "from", was.DialURLs(), "to", m.DialURLs())
	}
	if empty != "" {
		r.addresses.logger.Warn("a process without data runs where a member was that has moved: it is not that member",
			"peer", id.String(), "found", empty)
	}
	return false, nil
}

// MovePatience bounds what is asked of a member that is told of a move: it looks up to three times.
const MovePatience = 10 * time.Second

// lookAgain is after how long a member is looked for again that was not found where the configuration has it: one look that
// fails takes no member's URLs away.
const lookAgain = 2 * time.Second

// stillThere reports whether a member is where the configuration has it, and says in words if a process without data is there.
func (r *Requests) stillThere(ctx context.Context, known *consensus.Member) (there bool, empty string, err error) {
	presence, words := r.addresses.seek(ctx, known.ID, known.DialURLs())
	if presence == transport.Empty {
		return false, words, nil
	}
	if presence == transport.Present || presence.Misleads() {
		return presence == transport.Present, "", nil
	}
	if err := r.cluster.Sleep(ctx, lookAgain); err != nil {
		return false, "", err
	}
	presence, _ = r.addresses.seek(ctx, known.ID, known.DialURLs())
	return presence == transport.Present, "", nil
}

// own returns those of a member's URLs that no other one has, or at which it is found: its word alone takes no other's.
func own(config *consensus.Config, id consensus.MemberID, urls, at []string) ([]string, error) {
	var others []string
	for i := range config.Members {
		if m := &config.Members[i]; m.ID != id {
			others = append(others, m.DialURLs()...)
		}
	}
	left := slices.DeleteFunc(slices.Clone(urls), func(url string) bool {
		return slices.Contains(others, url) && !slices.Contains(at, url)
	})
	if len(left) == 0 {
		return nil, &membership.AddressError{Text: fmt.Sprintf("member %v says that it is at %s, where the configuration has "+
			"another member, and was not found there: correct its --initial-advertise-peer-urls", id, strings.Join(urls, ","))}
	}
	return left, nil
}

// moveTo returns what the configuration is to have of a member that was found at some of its URLs: these, or, if an update
// waits for it to move, its new URLs still, and these beside them. An update that leads to another process is over.
func (a *Addresses) moveTo(
	ctx context.Context, known *consensus.Member, urls, at []string,
) (consensus.Member, error) {
	to := consensus.Member{ID: known.ID, PeerURLs: urls}
	if len(known.FormerURLs) == 0 {
		return to, nil
	}
	if presence, _ := a.seek(ctx, known.ID, known.PeerURLs); presence.Misleads() {
		return to, nil
	}
	if !shareURL(urls, at) {
		_, words := a.seek(ctx, known.ID, urls)
		return to, &membership.AddressError{Text: words}
	}
	now := consensus.Member{PeerURLs: urls, FormerURLs: known.FormerURLs}
	to.PeerURLs, to.FormerURLs = known.PeerURLs, membership.Former(&now, false, known.PeerURLs)
	return to, tooManyFormer(known, to.FormerURLs)
}

// awaited reports whether a member with these URLs is where it was before an update that has not been confirmed.
func awaited(known *consensus.Member, urls []string) bool {
	return len(known.FormerURLs) > 0 && within(urls, known.DialURLs())
}

func within(urls, all []string) bool {
	return !slices.ContainsFunc(urls, func(url string) bool { return !slices.Contains(all, url) })
}

// displaced returns the update of a member that has moved, and those of members whose URLs it has now, if they are found at
// URLs of the configuration: members that have taken each other's place cannot be updated one after the other. One that loses
// only former URLs keeps the others: it may be about to move. Of members that are found nowhere it has none, and the change is
// refused.
func (a *Addresses) displaced(
	ctx context.Context, config *consensus.Config, moved consensus.Member, urls []string,
) []consensus.ChangeStep {
	var all []string
	for i := range config.Members {
		all = append(all, config.Members[i].DialURLs()...)
	}
	steps, claims := []consensus.ChangeStep{{Kind: consensus.ChangeUpdate, Member: moved}}, [][]string{urls}
	taken := func(url string) bool {
		return slices.ContainsFunc(claims, func(urls []string) bool { return slices.Contains(urls, url) })
	}
	for i := 0; i < len(steps); i++ {
		for j := range config.Members {
			other := &config.Members[j]
			if !shareURL(other.DialURLs(), claims[i]) || updates(steps, other.ID) {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(all), taken)
			at := a.where(ctx, other.ID, left)
			if len(at) == 0 {
				continue
			}
			to := consensus.Member{ID: other.ID, PeerURLs: at}
			if !shareURL(other.PeerURLs, claims[i]) {
				known := consensus.Member{PeerURLs: at, FormerURLs: other.FormerURLs}
				to.PeerURLs = other.PeerURLs
				to.FormerURLs = slices.DeleteFunc(membership.Former(&known, false, other.PeerURLs), taken)
			}
			steps = append(steps, consensus.ChangeStep{Kind: consensus.ChangeUpdate, Member: to})
			claims = append(claims, at)
		}
	}
	return steps
}

// stillAt returns a member that a configuration has at some URLs, and that a change leaves there. No two members may be
// dialled at one; where one has its peer URLs the core sees to that.
func stillAt(config *consensus.Config, steps []consensus.ChangeStep, urls []string) consensus.MemberID {
	for i := range config.Members {
		if m := &config.Members[i]; shareURL(m.DialURLs(), urls) && !updates(steps, m.ID) {
			return m.ID
		}
	}
	return consensus.NoMember
}

func updates(steps []consensus.ChangeStep, id consensus.MemberID) bool {
	return slices.ContainsFunc(steps, func(s consensus.ChangeStep) bool { return s.Member.ID == id })
}

// giveBack restores the former URLs of the first member whose URLs are really those at which the member id was found. A
// mistyped update may have assigned them; until it is undone, id cannot have its own URLs.
func (r *Requests) giveBack(
	ctx context.Context, view *membership.View, id consensus.MemberID, at []string,
) (gave bool, err error) {
	for i := range view.Config.Members {
		other := &view.Config.Members[i]
		if other.ID == id || !shareURL(other.PeerURLs, at) || len(other.FormerURLs) == 0 {
			continue
		}
		if presence, _ := r.addresses.seek(ctx, other.ID, other.PeerURLs); presence == transport.Present {
			continue
		}
		if gave, err := r.restore(ctx, view, other); gave || err != nil {
			return gave, err
		}
	}
	return false, nil
}

// restore gives a member those of its former URLs back at which it answers, if the configuration is still the one that the
// leader looked at. The leader itself gets all back, as far as a member may have so many: it may be found where it does not
// find itself.
func (r *Requests) restore(
	ctx context.Context, view *membership.View, known *consensus.Member,
) (restored bool, err error) {
	at := r.addresses.where(ctx, known.ID, known.FormerURLs)
	if len(at) == 0 {
		return false, nil
	}
	if !r.addresses.mayConfirm(known.ID) && len(known.FormerURLs) <= membership.MaxURLs {
		at = known.FormerURLs
	}
	back := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: known.ID, PeerURLs: at})
	back.Expected = view.ID
	if err := r.cluster.Change(ctx, &back); err != nil {
		return false, err
	}
	r.addresses.logger.Warn("the new peer URLs of a member lead to another process, and it answers at its former ones: those "+
		"were restored. Start it with --initial-advertise-peer-urls where it is to be, or correct the update", "peer",
		known.ID.String(), "refused-urls", known.PeerURLs, "urls", at)
	return true, nil
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

// Again returns whether it has told since it started.
func (t *Telling) Again() bool { return t.told }

// Told notes that it has told, or that the configuration says so already.
func (t *Telling) Told(config *consensus.Config, self consensus.MemberID) {
	known, _ := config.Member(self)
	*t = Telling{told: true, had: known.PeerURLs}
}

// Announcement is what a member has to tell that was started at some peer URLs.
type Announcement struct {
	Done  bool     // the configuration says so already, or has the member where it can be found
	Wrong string   // it does not answer there itself, says this in words: it tells no member
	Tells bool     // it has to
	URLs  []string // where it is: where it was started, or where an update has it that is not confirmed
	// Ask are the members to tell, one after the other: no others can be reached, for the leader does not know where to send
	// what it has to say. A member without others tells itself.
	Ask   []consensus.MemberID
	Known consensus.Member // as the configuration has it
}

// Announce says what a member does that was started at these peer URLs. Until a configuration has it, it can tell no member;
// one that has none yet looks for itself, since no other member would ever tell it that its URLs are wrong. One that has told
// once, and answers where the configuration has it but no more where it was started, has nothing to tell. That it finds itself
// does not show that others do: the leader, or the member that the leader tells, looks.
func (a *Addresses) Announce(ctx context.Context, self consensus.MemberID, urls []string, again bool) (n Announcement) {
	config := a.finder.Config()
	known, ok := config.Member(self)
	n.Known, n.URLs = known, urls
	switch {
	case !ok && len(config.Members) == 0:
		n.Wrong = a.Wrong(ctx, self, urls)
		return n
	case !ok:
		return n
	case membership.SameURLs(known.PeerURLs, urls):
		n.Done = len(known.FormerURLs) == 0
	case awaited(&known, urls):
		presence, _ := a.seek(ctx, self, known.PeerURLs)
		if n.Done = presence != transport.Present; n.Done {
			return n
		}
		n.URLs = known.PeerURLs
	}
	if n.Wrong = a.Wrong(ctx, self, n.URLs); n.Wrong != "" && again && !n.Done {
		if presence, _ := a.seek(ctx, self, known.PeerURLs); presence == transport.Present {
			n.Done, n.Wrong = true, ""
		}
	}
	if n.Done || n.Wrong != "" {
		return n
	}
	n.Tells = true
	n.Ask = slices.DeleteFunc(config.IDs(), func(id consensus.MemberID) bool { return id == self })
	return n
}

// look drops the former URLs of a member if it is found at its new ones.
func (r *Requests) look(ctx context.Context, view *membership.View, known *consensus.Member) error {
	if len(known.FormerURLs) == 0 || !r.addresses.mayConfirm(known.ID) {
		return nil
	}
	if presence, _ := r.addresses.seek(ctx, known.ID, known.PeerURLs); presence != transport.Present {
		return nil
	}
	return r.dropFormer(ctx, view, known)
}

func (r *Requests) dropFormer(ctx context.Context, view *membership.View, known *consensus.Member) error {
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: known.ID, PeerURLs: known.PeerURLs})
	request.Expected = view.ID
	err := r.cluster.Change(ctx, &request)
	if err == nil {
		r.addresses.logger.Info("found a member at its new peer URLs", "peer", known.ID.String())
	}
	return err
}

// SettleAddresses looks for members that were not found when their URLs were changed, one after the other. The former URLs of
// one that is found at its new ones are dropped. One whose new URLs lead to another process gets its former ones back, if it
// answers there: else the member to which those URLs belong could not have them. An update that is made while the leader looks
// stays.
func (r *Requests) SettleAddresses(ctx context.Context) {
	config := r.addresses.finder.Config()
	for i := range config.Members {
		if known := &config.Members[i]; len(known.FormerURLs) > 0 {
			r.settleAddress(ctx, known.ID)
		}
	}
}

func (r *Requests) settleAddress(ctx context.Context, id consensus.MemberID) {
	ctx, cancel := context.WithTimeout(ctx, StepPatience)
	defer cancel()
	view, err := r.addresses.finder.Describe(ctx)
	known, ok := view.Config.Member(id)
	if err != nil || !ok || len(known.FormerURLs) == 0 {
		return
	}
	presence, _ := r.addresses.seek(ctx, known.ID, known.PeerURLs)
	switch {
	case presence.Misleads():
		_, _ = r.restore(ctx, &view, &known) // it is tried again
	case presence == transport.Present && r.addresses.mayConfirm(id): // else the members look that this one tells
		_ = r.dropFormer(ctx, &view, &known) // likewise
	}
}
