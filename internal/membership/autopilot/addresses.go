package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// A peer URL in the configuration is a hint that was checked: before an update is proposed, some member has found the one of
// that id at the new address. Where that was not possible, the former addresses stay beside the new ones until the leader
// finds the member there.

// addressPatience bounds the look at one URL.
const addressPatience = 2 * time.Second

// notFoundRemedy is what to do about a member that is not at its new address.
const notFoundRemedy = ": correct them, or start it there with --initial-advertise-peer-urls, and it tells its new address " +
	"by itself; --force REASON changes them all the same and keeps the former ones until it is found"

// newcomerRemedy is what to do about a newcomer that can not have its URLs.
const newcomerRemedy = ": correct the peer URLs of the new member"

// Addresses checks peer URLs before they are changed.
type Addresses struct {
	finder Finder
	logger *slog.Logger
}

// NewAddresses returns the checks of a member.
func NewAddresses(finder Finder, logger *slog.Logger) *Addresses {
	return &Addresses{finder: finder, logger: logger}
}

// Confirm looks for the members whose URLs a change updates, and completes the request with the former URLs of those that were
// not found, and with the configuration that it looked at, unless the request names one. That a member finds itself says
// nothing of where others find it: its former URLs stay, too. No newcomer gets a URL at which a member was found, or a
// client port, unless demand is Forced. Errors: *membership.AddressError, and what Describe of the finder returns.
func (a *Addresses) Confirm(ctx context.Context, request *consensus.ChangeRequest, demand membership.Caution) error {
	if err := a.vacant(ctx, request); err != nil && demand != membership.Forced {
		return err
	}
	if !slices.ContainsFunc(request.Steps, func(s consensus.ChangeStep) bool { return s.Kind == consensus.ChangeUpdate }) {
		return nil
	}
	view, err := a.finder.Describe(ctx) // what is applied here may be older
	if err != nil {
		return err
	}
	if request.Expected == (consensus.ConfigID{}) {
		request.Expected = view.ID
	}
	at := make([][]string, len(request.Steps)) // where the members were found
	var doubtful []consensus.MemberID
	for i := range request.Steps {
		step := &request.Steps[i]
		known, ok := view.Config.Member(step.Member.ID)
		if !ok || !a.confirms(&view.Config, step) || keepsURLs(&known, &step.Member) {
			continue
		}
		found, why := a.ask(ctx, known.ID, step.Member.PeerURLs)
		if at[i] = present(found, step.Member.PeerURLs); len(at[i]) > 0 {
			continue
		}
		presence, words := a.words(known.ID, step.Member.PeerURLs, found, why)
		if !demand.Accepts(presence.Misleads()) {
			return &membership.AddressError{Text: words}
		}
		doubtful = append(doubtful, known.ID)
		a.logger.Warn("a member was not found at its new peer URLs: the former ones are kept until it is", "peer",
			known.ID.String(), "urls", strings.Join(step.Member.PeerURLs, ","), "found", words)
	}
	if err := a.keepFormer(ctx, &view.Config, request, at); err != nil {
		return err
	}
	if len(doubtful) > 0 && demand != membership.Forced && !membership.EnoughWithout(&view, doubtful) {
		return &membership.AddressError{Text: fmt.Sprintf("%v does not answer at the new peer URLs, and without it the others "+
			"that are up, have caught up and are where the configuration says are no quorum: move it first; it tells its new "+
			"address by itself", doubtful[0])}
	}
	return nil
}

// confirms reports whether a member has to be found before a step of a change is made: also if its URLs stay, as long as it has
// former ones, which the request must not drop.
func (a *Addresses) confirms(config *consensus.Config, step *consensus.ChangeStep) bool {
	known, ok := config.Member(step.Member.ID)
	return step.Kind == consensus.ChangeUpdate && ok &&
		(len(known.FormerURLs) > 0 || a.relocates(config, &known, step.Member.PeerURLs))
}

// keepsURLs reports whether a step only takes former URLs away, as displaced makes one.
func keepsURLs(known, to *consensus.Member) bool {
	return len(to.FormerURLs) > 0 && membership.SameURLs(known.PeerURLs, to.PeerURLs)
}

// keepFormer completes a request with the former URLs of members that no other member has found where they are to be, but
// those at which another member of the change was found.
func (a *Addresses) keepFormer(
	ctx context.Context, config *consensus.Config, request *consensus.ChangeRequest, at [][]string,
) error {
	for i := range request.Steps {
		step := &request.Steps[i]
		known, ok := config.Member(step.Member.ID)
		found := len(at[i]) > 0 && a.mayConfirm(known.ID)
		if !ok || !a.confirms(config, step) || keepsURLs(&known, &step.Member) || found {
			continue
		}
		step.Member.FormerURLs = slices.DeleteFunc(a.former(ctx, &known, step.Member.PeerURLs), func(url string) bool {
			for k := range at {
				if k != i && slices.Contains(at[k], url) {
					return true
				}
			}
			return false
		})
		if more := len(step.Member.FormerURLs) - membership.MaxFormer; more > 0 && len(at[i]) > 0 {
			step.Member.FormerURLs = step.Member.FormerURLs[more:] // it has found itself so often: the oldest may go
		}
		if err := tooManyFormer(&known, step.Member.FormerURLs); err != nil {
			return err
		}
	}
	return nil
}

func tooManyFormer(known *consensus.Member, former []string) error {
	if len(former) <= membership.MaxFormer {
		return nil
	}
	return &membership.AddressError{Text: fmt.Sprintf("member %v keeps %d former peer URLs, and no more are kept, since the "+
		"leader has not found it at %s: update it to the peer URLs at which it answers now", known.ID, len(known.FormerURLs),
		strings.Join(known.PeerURLs, ","))}
}

// mayConfirm reports whether it counts here where a member is found: that one finds itself says nothing of where others find
// it, or those will that join.
func (a *Addresses) mayConfirm(id consensus.MemberID) bool { return id != a.finder.Self() }

// relocates reports whether a member that has been up gets an address that it does not have. One that never started can be
// found nowhere, and counts nowhere.
func (a *Addresses) relocates(config *consensus.Config, known *consensus.Member, urls []string) bool {
	return !membership.SameURLs(known.PeerURLs, urls) && (a.finder.Started(known.ID) || config.IsVoter(known.ID))
}

// seek looks for a member at URLs, all at once, and says in words what was found if it was not.
func (a *Addresses) seek(ctx context.Context, id consensus.MemberID, urls []string) (transport.Presence, string) {
	found, why := a.ask(ctx, id, urls)
	if slices.Contains(found, transport.Present) {
		return transport.Present, ""
	}
	return a.words(id, urls, found, why)
}

// words says what was found at URLs where a member was not.
func (a *Addresses) words(
	id consensus.MemberID, urls []string, found []transport.Presence, why []error,
) (worst transport.Presence, text string) {
	words := make([]string, len(urls))
	worst = transport.Silent
	for i, url := range urls {
		switch found[i] {
		case transport.Silent:
			words[i] = fmt.Sprintf("nobody answers at %s", url)
		case transport.Another:
			words[i] = fmt.Sprintf("somebody else answers at %s", url)
		case transport.Empty:
			words[i] = transport.EmptyAt(a.nameOf(id), url)
		case transport.NoPeerPort:
			words[i] = a.wrongURL(url, why[i])
		case transport.Unsure:
			words[i] = fmt.Sprintf("what listens at %s does not say who it is (%v)", url, why[i])
		}
		worst = max(worst, found[i])
	}
	return worst, fmt.Sprintf("member %v is not found at these peer URLs: %s", id, strings.Join(words, ", "))
}

// nameOf is what people call a member.
func (a *Addresses) nameOf(id consensus.MemberID) string {
	config := a.finder.Config()
	known, _ := config.Member(id)
	return cmp.Or(known.Name, id.String())
}

// where returns those of some URLs at which a member is found.
func (a *Addresses) where(ctx context.Context, id consensus.MemberID, urls []string) []string {
	found, _ := a.ask(ctx, id, urls)
	return present(found, urls)
}

// vacant fails if a change adds a member at a URL where another one is found, or a client port.
func (a *Addresses) vacant(ctx context.Context, request *consensus.ChangeRequest) error {
	config := a.finder.Config()
	for i := range request.Steps {
		step := &request.Steps[i]
		if step.Kind != consensus.ChangeAddVoter && step.Kind != consensus.ChangeAddLearner {
			continue
		}
		if words := a.notForNewcomer(ctx, &config, step.Member.PeerURLs); words != "" {
			return &membership.AddressError{Text: words + newcomerRemedy}
		}
	}
	return nil
}

func residentWords(known *consensus.Member, url string) string {
	return fmt.Sprintf("member %v (%s), which the configuration has at %s, answers at %s", known.ID, known.Name,
		strings.Join(known.PeerURLs, ","), url)
}

// notForNewcomer says in words why a newcomer can not have some URLs; empty: nothing is known against them. A member that is
// found at one which the configuration does not have of it has moved there, and the newcomer would keep it from its own. The
// usual typo is a client port: no member would reach the newcomer there, and it would wait for ever.
func (a *Addresses) notForNewcomer(ctx context.Context, config *consensus.Config, urls []string) string {
	words := make([]string, len(config.Members))
	var asking sync.WaitGroup
	for i := range config.Members {
		if known := &config.Members[i]; !shareURL(known.DialURLs(), urls) { // else the change is refused, or it is replaced
			asking.Go(func() { words[i] = a.takenBy(ctx, known, urls) })
		}
	}
	asking.Wait()
	return cmp.Or(words...)
}

// takenBy looks for a member at URLs that may be a newcomer's, and says in words what speaks against that.
func (a *Addresses) takenBy(ctx context.Context, known *consensus.Member, urls []string) string {
	found, why := a.ask(ctx, known.ID, urls)
	for i, url := range urls {
		var other *transport.NoPeerPortError
		switch {
		case found[i] == transport.Present:
			return residentWords(known, url)
		case found[i] == transport.NoPeerPort && errors.As(why[i], &other) && other.Member != consensus.NoMember:
			return a.wrongURL(url, why[i])
		}
	}
	return ""
}

func shareURL(a, b []string) bool {
	return slices.ContainsFunc(a, func(url string) bool { return slices.Contains(b, url) })
}

func present(found []transport.Presence, urls []string) (at []string) {
	for i, url := range urls {
		if found[i] == transport.Present && !slices.Contains(at, url) {
			at = append(at, url)
		}
	}
	return at
}

// ask asks for a member at URLs, all at once.
func (a *Addresses) ask(ctx context.Context, id consensus.MemberID, urls []string) (found []transport.Presence, why []error) {
	ctx, cancel := context.WithTimeout(ctx, addressPatience)
	defer cancel()
	found, why = make([]transport.Presence, len(urls)), make([]error, len(urls))
	var asking sync.WaitGroup
	for i, url := range urls {
		asking.Go(func() { found[i], why[i] = a.finder.Find(ctx, id, url) })
	}
	asking.Wait()
	return found, why
}

// Wrong says in words why a member that looks for itself knows these peer URLs for wrong: no process listens at any of them,
// or another one than the member does. It is empty where they may be right: what cannot be reached from here may be reached
// from elsewhere.
func (a *Addresses) Wrong(ctx context.Context, self consensus.MemberID, urls []string) string {
	presence, words := a.seek(ctx, self, urls)
	if presence == transport.Silent || presence.Misleads() {
		return words
	}
	return ""
}

// wrongURL says in words what answers at a URL that is no peer port.
func (a *Addresses) wrongURL(url string, why error) string {
	return fmt.Sprintf("%s is a wrong URL: %v%s", url, why, a.whoseClientPort(why))
}

// whoseClientPort completes the words about a client port, if its member is known: with what was probably meant.
func (a *Addresses) whoseClientPort(err error) string {
	var other *transport.NoPeerPortError
	if !errors.As(err, &other) || other.Member == consensus.NoMember {
		return ""
	}
	config := a.finder.Config()
	known, ok := config.Member(other.Member)
	if !ok {
		return "; it is no member of this cluster"
	}
	return fmt.Sprintf("; %v is %s, and, as far as is known here, its peer URL is %s", known.ID,
		cmp.Or(known.Name, "a member without a name"), strings.Join(known.PeerURLs, ","))
}

// blockers say which updates of a plan cannot be made because the member does not answer where it is to be, and which newcomers
// can not have their URLs.
func (a *Addresses) blockers(ctx context.Context, spec *membership.Spec, view *membership.View) []string {
	if spec.Force != "" {
		return nil
	}
	updates := len(spec.Update)
	words := make([]string, updates+len(spec.Add))
	var asking sync.WaitGroup
	for i := range spec.Add {
		asking.Go(func() {
			if found := a.notForNewcomer(ctx, &view.Config, spec.Add[i].PeerURLs); found != "" {
				words[updates+i] = found + newcomerRemedy
			}
		})
	}
	for i := range spec.Update {
		u := &spec.Update[i]
		known, ok := view.Config.Member(u.ID)
		if !ok || !a.relocates(&view.Config, &known, u.PeerURLs) {
			continue
		}
		asking.Go(func() {
			if presence, found := a.seek(ctx, u.ID, u.PeerURLs); presence != transport.Present {
				words[i] = found + notFoundRemedy
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(words, func(text string) bool { return text == "" })
}

// former are the URLs that are kept beside new ones until the member is found there.
func (a *Addresses) former(ctx context.Context, known *consensus.Member, urls []string) []string {
	there := false
	if len(known.FormerURLs) > 0 && a.mayConfirm(known.ID) {
		presence, _ := a.seek(ctx, known.ID, known.PeerURLs)
		there = presence == transport.Present
	}
	return membership.Former(known, there, urls)
}
