package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// madeUp is the least of the ids that only plans use, for newcomers that have none yet.
const madeUp = ^consensus.MemberID(0) - maxMembers*maxMembers

// memberNames is what people call members: those of a View, newcomers, and members that may be gone.
type memberNames struct {
	view     *View
	config   *consensus.Config // the members that memberList lists
	arrivals arrivals
	gone     []Named
}

// label is what people call a member: its name, if it has one that no other member has.
func (n *memberNames) label(id consensus.MemberID) string {
	name := n.nameOf(id)
	switch {
	case name == "":
		return "member " + id.String()
	case n.sharedName(name, id) && id >= madeUp:
		return "the new " + name
	case n.sharedName(name, id):
		return fmt.Sprintf("%s (%v)", name, id)
	}
	return name
}

func (n *memberNames) nameOf(id consensus.MemberID) string {
	if m, ok := n.view.Member(id); ok && m.Name != "" {
		return m.Name
	}
	if m, ok := n.view.Config.Member(id); ok && m.Name != "" {
		return m.Name
	}
	for i := range n.arrivals {
		if a := &n.arrivals[i]; a.ID == id && (a.Name != "" || len(a.PeerURLs) == 0) {
			return a.Name
		} else if a.ID == id {
			return a.PeerURLs[0]
		}
	}
	for _, gone := range n.gone {
		if gone.ID == id {
			return gone.Name
		}
	}
	return ""
}

func (n *memberNames) sharedName(name string, id consensus.MemberID) bool {
	for i := range n.view.Config.Members {
		if m := &n.view.Config.Members[i]; m.ID != id && n.view.publishedName(m) == name {
			return true
		}
	}
	return false
}

func (n *memberNames) list(ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = n.label(id)
	}
	return join(words)
}

// memberList names all members with their ids, for an operator who named one that is not among them.
func (n *memberNames) memberList() string {
	var words []string
	for _, id := range n.config.IDs() {
		if name := n.nameOf(id); name != "" {
			words = append(words, fmt.Sprintf("%v (%s)", id, name))
		} else {
			words = append(words, id.String())
		}
	}
	return join(words)
}

// word is how a command names a member.
func (n *memberNames) word(id consensus.MemberID) string {
	if name := n.nameOf(id); name != "" && !n.sharedName(name, id) {
		return name
	}
	return id.String()
}

// newWord is how a command will name a newcomer, whose id may not be drawn yet.
func (n *memberNames) newWord(s *Spec, a *arrival) string {
	switch {
	case a.Name != "" && !n.sharedName(a.Name, a.ID):
		return a.Name
	case slices.ContainsFunc(s.Add, func(asked Newcomer) bool { return asked.ID == a.ID }):
		return a.ID.String()
	}
	return "ID"
}

func (n *memberNames) either(ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = n.label(id)
	}
	return strings.Join(words, " or ")
}
