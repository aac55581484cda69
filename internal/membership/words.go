package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// label is what people call a member: its name, if it has one that no other member has.
func (g *goal) label(id consensus.MemberID) string {
	name := g.nameOf(id)
	switch {
	case name == "":
		return "member " + id.String()
	case g.sharedName(name, id) && id >= madeUp:
		return "the new " + name
	case g.sharedName(name, id):
		return fmt.Sprintf("%s (%v)", name, id)
	}
	return name
}

func (g *goal) nameOf(id consensus.MemberID) string {
	if m, ok := g.view.Member(id); ok && m.Name != "" {
		return m.Name
	}
	if m, ok := g.view.Config.Member(id); ok && m.Name != "" {
		return m.Name
	}
	for i := range g.arrivals {
		if a := &g.arrivals[i]; a.ID == id && (a.Name != "" || len(a.PeerURLs) == 0) {
			return a.Name
		} else if a.ID == id {
			return a.PeerURLs[0]
		}
	}
	for _, n := range g.names {
		if n.ID == id {
			return n.Name
		}
	}
	return ""
}

func (g *goal) sharedName(name string, id consensus.MemberID) bool {
	for i := range g.view.Config.Members {
		if m := &g.view.Config.Members[i]; m.ID != id && g.publishedName(m) == name {
			return true
		}
	}
	return false
}

func (g *goal) list(ids []consensus.MemberID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = g.label(id)
	}
	return join(words)
}

// memberList names all members with their ids, for who named one that is not among them.
func (g *goal) memberList() string {
	var words []string
	for _, id := range g.config.IDs() {
		if name := g.nameOf(id); name != "" {
			words = append(words, fmt.Sprintf("%v (%s)", id, name))
		} else {
			words = append(words, id.String())
		}
	}
	return join(words)
}

func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func count(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what, what+"s")) }

func seconds(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d.%d s", ms/1000, ms%1000/100)
	}
	return fmt.Sprintf("%d s", ms/1000)
}

func bytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, at := float64(n), 0
	for value >= 1024 && at < len(units)-1 {
		value, at = value/1024, at+1
	}
	if at == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[at])
}

func (g *goal) newIDs() []consensus.MemberID {
	var ids []consensus.MemberID
	for _, a := range g.missing() {
		ids = append(ids, a.ID)
	}
	return ids
}

// awaiting says what each learner that is waited for is at.
func (g *goal) awaiting() string {
	var words []string
	for _, m := range g.awaited() {
		words = append(words, g.progress(&m))
	}
	return strings.Join(words, "; ")
}

func (g *goal) progress(m *MemberView) string {
	name := g.label(m.ID)
	switch {
	case m.refused():
		return g.resetWords(m)
	case unheard(*m) && m.Started:
		return fmt.Sprintf("%s has not answered for %s: start it again", name, seconds(m.SilentMS))
	case unheard(*m):
		return fmt.Sprintf("%s has not started yet: run `%s` on its machine, with your flags for data, clients and "+
			"TLS", name, g.startCommand(m.ID))
	case m.Snapshot != nil && m.Snapshot.Total > 0:
		words := fmt.Sprintf("%s has received %s of %s of the state", name, bytes(m.Snapshot.Sent), bytes(m.Snapshot.Total))
		if m.Snapshot.BytesPerSecond > 0 {
			words += fmt.Sprintf(" at %s a second", bytes(m.Snapshot.BytesPerSecond))
		}
		return words
	case receivesSnapshot(*m):
		return name + " receives the state"
	}
	return fmt.Sprintf("%s is %s of the log behind", name, lag(g.view, m))
}

// refused reports whether the member is refused: it has no data directory that it may use.
func (m *MemberView) refused() bool { return m.State == LostItsDisk || m.State == RolledBack }

// resetWords say what cures a member that is refused.
func (g *goal) resetWords(m *MemberView) string {
	was := "was rolled back"
	if m.State == LostItsDisk {
		was = m.State
	}
	return fmt.Sprintf("%s %s: replace it, with an empty directory and `quorate member reset %s`", g.label(m.ID), was,
		cmp.Or(g.nameOf(m.ID), m.ID.String()))
}

func lag(v *View, m *MemberView) string {
	if m.Match >= v.Last {
		return "less than a round trip"
	}
	n := uint64(v.Last - m.Match)
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// startCommand is how somebody starts a newcomer. Any member's peer URL will do to join by; the leader's is shown.
func (g *goal) startCommand(id consensus.MemberID) string {
	words := []string{"quorate"}
	if name := g.nameOf(id); name != "" && !strings.Contains(name, "://") {
		words = append(words, "--name", name)
	}
	m, ok := g.config.Member(id)
	for i := range g.arrivals {
		if a := &g.arrivals[i]; a.ID == id && !ok {
			m = consensus.Member{PeerURLs: a.PeerURLs}
		}
	}
	urls := strings.Join(m.PeerURLs, ",")
	words = append(words, "--join", g.door(id), "--listen-peer-urls", urls, "--initial-advertise-peer-urls", urls)
	return strings.Join(words, " ")
}

// door is the peer URL of a member by which id can join: the leader's, if it is known.
func (g *goal) door(id consensus.MemberID) string {
	door := "PEER_URL_OF_A_MEMBER"
	for i := range g.view.Members {
		seen := &g.view.Members[i]
		peer, _ := g.config.Member(seen.ID)
		if seen.ID == id || !seen.Active || len(peer.PeerURLs) == 0 {
			continue
		}
		if seen.ID == g.view.Leader {
			return peer.PeerURLs[0]
		}
		door = peer.PeerURLs[0]
	}
	return door
}

func (g *goal) handOverWords(to consensus.MemberID) string {
	return fmt.Sprintf("hands leadership from %s to %s", g.label(g.view.Leader), g.label(to))
}

// heirs names who may lead next. Which of several has most of the log is decided by the write before the hand-over.
func (g *goal) heirs() string {
	var ids []consensus.MemberID
	for _, m := range g.successors() {
		ids = append(ids, m.ID)
	}
	if len(ids) < 2 {
		return g.list(ids)
	}
	last := len(ids) - 1
	return strings.ReplaceAll(g.list(ids[:last]), " and ", ", ") + " or " + g.label(ids[last]) +
		", whichever has most of the log"
}

func (g *goal) noSuccessorWords() string {
	var others []consensus.MemberID
	for _, id := range g.config.Voters {
		if !slices.Contains(g.spec.Drain, id) && !g.config.Cordoned(id) {
			others = append(others, id)
		}
	}
	held := pick(g.config.Voters, func(id consensus.MemberID) bool {
		return g.config.Cordoned(id) && !slices.Contains(g.spec.Drain, id)
	})
	if len(others) == 0 && len(held) > 0 {
		return fmt.Sprintf("%s cannot hand leadership over: of the others %s %s cordoned; uncordon one first",
			g.label(g.view.Leader), g.list(held), plural(len(held), "is", "are"))
	}
	if len(others) == 0 {
		return fmt.Sprintf("%s cannot hand leadership over: every voter is to be drained; leave one out",
			g.label(g.view.Leader))
	}
	return fmt.Sprintf("%s cannot hand leadership over: %s %s not answer or %s behind; start %s, or wait",
		g.label(g.view.Leader), g.list(others), plural(len(others), "does", "do"), plural(len(others), "is", "are"),
		plural(len(others), "it", "one of them"))
}

// cordonWords say which marks change, in the third person if s is "s".
func (g *goal) cordonWords(s string) string {
	var words []string
	if len(g.cordon) > 0 {
		words = append(words, "cordon"+s+" "+g.list(g.cordon))
	}
	if len(g.uncordon) > 0 {
		words = append(words, "uncordon"+s+" "+g.list(g.uncordon))
	}
	return join(words)
}

func (g *goal) yieldWords() string {
	return fmt.Sprintf("waits until %s, which is cordoned, has handed leadership to %s", g.label(g.view.Leader), g.heirs())
}

func expectedWords(now, want consensus.ConfigID) string {
	return fmt.Sprintf("the configuration is %v, the plan expects %v: plan again", now, want)
}

// swapWords say what is being changed, in the third person.
func (g *goal) swapWords() string { return g.roleWords("swaps", "makes", "removes", "changes") }

// swapTitle says the same as an order.
func (g *goal) swapTitle() string { return g.roleWords("swap", "make", "remove", "change") }

func (g *goal) roleWords(swap, make, remove, change string) string {
	var words []string
	replaces := len(g.promote) > 0 && len(g.remove) > 0 && len(g.demote) == 0 &&
		!slices.ContainsFunc(g.remove, g.config.IsLearner)
	switch {
	case replaces:
		words = append(words, fmt.Sprintf("%s %s for %s", swap, g.list(g.remove), g.list(g.promote)))
	default:
		if n := len(g.promote); n > 0 {
			words = append(words, fmt.Sprintf("%s %s %s", make, g.list(g.promote), plural(n, "a voter", "voters")))
		}
		if len(g.remove) > 0 {
			words = append(words, remove+" "+g.list(g.remove))
		}
		if n := len(g.demote); n > 0 {
			words = append(words, fmt.Sprintf("%s %s %s", make, g.list(g.demote), plural(n, "a learner", "learners")))
		}
	}
	for i := range g.update {
		u := &g.update[i]
		urls := strings.Join(u.PeerURLs, ",")
		words = append(words, fmt.Sprintf("%s the peer URLs of %s to %s", change, g.label(u.ID), urls))
	}
	return join(words)
}

func (g *goal) settling() string {
	words := fmt.Sprintf("waits until configuration %v is final", g.view.ID)
	if going := g.removedWords(" may not be switched off before"); going != "" {
		words += ": " + going
	}
	return words
}

func (g *goal) removedWords(then string) string {
	if len(g.spec.Remove) == 0 {
		return ""
	}
	return g.list(g.spec.Remove) + then
}

// inItsOwnPlace reports whether a member was replaced by one of its own name: nobody is to be switched off.
func (g *goal) inItsOwnPlace() bool {
	for i := range g.spec.Add {
		for _, id := range g.spec.Remove {
			if name := g.nameOf(id); name != "" && name == g.spec.Add[i].Name {
				return true
			}
		}
	}
	return false
}

// doneWords tell how the cluster is now, and who may be switched off.
func (g *goal) doneWords() string {
	words := fmt.Sprintf("%s %s", g.list(g.config.Voters), plural(len(g.config.Voters), "votes", "vote"))
	if n := len(g.config.Learners); n > 0 {
		words += fmt.Sprintf(", %s %s", g.list(g.config.Learners), plural(n, "learns", "learn"))
	}
	if n := len(g.spec.Cordon); n > 0 {
		words += fmt.Sprintf("; %s %s cordoned", g.list(g.spec.Cordon), plural(n, "is", "are"))
	}
	if slices.Contains(g.spec.Cordon, g.view.Leader) {
		words += fmt.Sprintf(": %s leads on until another voter can", g.label(g.view.Leader))
	}
	if len(g.spec.Uncordon) > 0 {
		words += fmt.Sprintf("; %s may lead", g.list(g.spec.Uncordon))
	}
	switch gone := g.removedWords(" may be switched off"); {
	case gone != "" && g.inItsOwnPlace():
		words += "; the former data directory of " + g.nameOf(g.spec.Remove[0]) + " may be deleted"
	case gone != "":
		words += "; " + gone
	}
	return words
}
