package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
)

// Limits keep a job small: it is replicated, and shown.
const (
	maxMembers  = 64 // that one Spec names
	MaxURLs     = 8  // of one member
	maxURLBytes = 512

	dayMS     = 24 * hourMS
	maxJoinMS = 30 * dayMS
)

// Validate returns every fault of s that can be told without a cluster, one sentence each; nil if there is none.
func (s *Spec) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch s.Kind {
	case "", KindChange, KindReplace, KindDrain:
	default:
		fault("the kind %q is unknown: use %s, %s or %s", s.Kind, KindChange, KindReplace, KindDrain)
	}
	if s.Protocol != consensus.ProtocolAuto && !s.Protocol.Known() {
		fault("the protocol is unknown: use one of %s", strings.Join(consensus.ProtocolNames(), ", "))
	}
	if s.JoinWithinMS < 0 || s.JoinWithinMS > maxJoinMS {
		fault("newcomers may take no less than 0 and no more than %d days to start", maxJoinMS/dayMS)
	}
	if len(s.Force) > maxURLBytes {
		fault("the reason to force the change has more than %d bytes", maxURLBytes)
	}
	if len(s.After) > maxMembers {
		fault("%d jobs are named to wait for, more than %d", len(s.After), maxMembers)
	}
	changes := len(s.Add) + len(s.Remove) + len(s.Promote) + len(s.Demote) + len(s.Update) + len(s.Cordon) + len(s.Uncordon)
	switch {
	case changes+len(s.Drain) > maxMembers:
		fault("%d members are named, more than %d: make several changes of it", changes+len(s.Drain), maxMembers)
		return errors.Join(faults...)
	case len(s.Drain) > 0 && changes > 0:
		fault("drain goes with no other change: a member that is removed or demoted is drained anyway")
	case s.Kind == KindDrain && len(s.Drain) == 0:
		fault("drain names no member")
	case s.Kind == KindReplace && !s.oneForOne():
		fault("replace takes one member out and one in: name one to remove, and one to add or to promote")
	case changes+len(s.Drain) == 0:
		fault("nothing is asked for: name members to add, remove, promote, demote, update, cordon, uncordon or drain")
	}
	faults = append(faults, s.idFaults()...)
	return errors.Join(append(faults, s.urlFaults()...)...)
}

// oneForOne reports whether one member goes out and one comes in.
func (s *Spec) oneForOne() bool {
	return len(s.Remove) == 1 && len(s.Add)+len(s.Promote) == 1 && len(s.Demote)+len(s.Update)+len(s.Drain) == 0 &&
		len(s.Cordon)+len(s.Uncordon) == 0
}

// existing lists the members that s names and that must be there already.
func (s *Spec) existing() []consensus.MemberID {
	return slices.Concat(s.roles(), s.Cordon, s.Uncordon)
}

// roles lists the members for which s wants something else than a mark of cordon.
func (s *Spec) roles() []consensus.MemberID {
	ids := slices.Concat(s.Remove, s.Promote, s.Demote, s.Drain)
	for i := range s.Update {
		ids = append(ids, s.Update[i].ID)
	}
	return ids
}

func (s *Spec) idFaults() []error {
	ids := s.roles()
	for i := range s.Add {
		if id := s.Add[i].ID; id != consensus.NoMember {
			ids = append(ids, id)
		}
	}
	marked := slices.Concat(s.Cordon, s.Uncordon) // a mark goes with another change of the same member, but for its removal
	faults := slices.Concat(repeatFaults(ids), repeatFaults(marked))
	for _, id := range s.Remove {
		if slices.Contains(marked, id) {
			faults = append(faults, fmt.Errorf("member %v is to be removed: it cannot be cordoned or uncordoned", id))
		}
	}
	return faults
}

func repeatFaults(ids []consensus.MemberID) []error {
	var faults []error
	for i, id := range ids {
		switch {
		case id == consensus.NoMember:
			faults = append(faults, errors.New("a member lacks its id"))
		case id >= madeUp:
			faults = append(faults, fmt.Errorf("no member has the id %v", id))
		case slices.Contains(ids[:i], id) && !slices.Contains(ids[i+1:], id):
			faults = append(faults, fmt.Errorf("member %v is named more than once: one change does one thing to it", id))
		}
	}
	return faults
}

// cut shortens what others gave for a message: it stands in many.
func cut(text string) string {
	const most = config.MaxNameBytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// FitsURL reports whether a peer URL is not too long.
func FitsURL(url string) bool { return len(url) <= maxURLBytes }

func (s *Spec) urlFaults() []error {
	var faults []error
	var seen, names []string
	check := func(who string, urls []string) {
		switch {
		case len(urls) == 0:
			faults = append(faults, fmt.Errorf("%s has no peer URL: say where it listens for other members", who))
		case len(urls) > MaxURLs:
			faults = append(faults, fmt.Errorf("%s has %d peer URLs, more than %d", who, len(urls), MaxURLs))
			return
		}
		for _, url := range urls {
			if slices.Contains(seen, url) {
				faults = append(faults, fmt.Errorf("the URL %s is given twice", cut(url)))
				continue
			}
			seen = append(seen, url)
			if !FitsURL(url) {
				faults = append(faults, fmt.Errorf("%s has a peer URL of more than %d bytes", who, maxURLBytes))
			} else if _, err := config.ParseURL(url); err != nil {
				faults = append(faults, fmt.Errorf("%s has a peer URL that does not serve: %w", who, err))
			}
		}
	}
	for i := range s.Add {
		n := &s.Add[i]
		if n.Name != "" && slices.Contains(names, n.Name) {
			faults = append(faults, fmt.Errorf("two newcomers are called %s", cut(n.Name)))
		}
		names = append(names, n.Name)
		who := "newcomer " + cut(printable.Text(n.Name, maxURLBytes))
		if n.Name == "" {
			who = fmt.Sprintf("newcomer %d", i+1)
		}
		if err := config.CheckName(n.Name); err != nil { // of a member that is known any name is taken
			faults = append(faults, fmt.Errorf("%s has a name that cannot be: name %w", who, err))
		}
		check(who, n.PeerURLs)
	}
	for i := range s.Update {
		check("member "+s.Update[i].ID.String(), s.Update[i].PeerURLs)
	}
	return faults
}
