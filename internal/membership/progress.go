package membership

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

func (n *memberNames) progress(m *MemberView) string {
	name := n.label(m.ID)
	switch {
	case m.refused():
		return n.resetWords(m)
	case unheard(*m) && m.Started:
		return fmt.Sprintf("%s has not answered for %s: start it again", name, seconds(m.SilentMS))
	case unheard(*m):
		return fmt.Sprintf("%s has not started yet: run `%s` on its machine, with your flags for data, clients and "+
			"TLS", name, n.startCommand(m.ID))
	case m.Snapshot != nil && m.Snapshot.Total > 0:
		words := fmt.Sprintf("%s has received %s of %s of the state", name, bytes(m.Snapshot.Sent), bytes(m.Snapshot.Total))
		if m.Snapshot.BytesPerSecond > 0 {
			words += fmt.Sprintf(" at %s a second", bytes(m.Snapshot.BytesPerSecond))
		}
		return words
	case receivesSnapshot(*m):
		return name + " receives the state"
	}
	return fmt.Sprintf("%s is %s of the log behind", name, lag(n.view, m))
}

// resetWords say what cures a member that is refused.
func (n *memberNames) resetWords(m *MemberView) string {
	if m.State == OtherHistory {
		return fmt.Sprintf("a process of another history of this cluster answers at the address of %s: stop it, move its data "+
			"directory aside, and start %s with its own", n.label(m.ID), n.label(m.ID))
	}
	was, first := "was rolled back", ""
	if m.State == LostItsDisk {
		was, first = m.State, "if it was moved and has its data elsewhere, stop the process that answers at its address; else "
	}
	return fmt.Sprintf("%s %s: %sstart it with %s, and run `quorate member reset %s`", n.label(m.ID), was, first, typed.Emptied,
		typed.Word(cmp.Or(n.nameOf(m.ID), m.ID.String())))
}

// startCommand is how an operator starts a newcomer. Any member's peer URL will do to join by; the leader's is shown.
func (n *memberNames) startCommand(id consensus.MemberID) string {
	name := n.nameOf(id)
	if strings.Contains(name, "://") {
		name = ""
	}
	m, ok := n.config.Member(id)
	for i := range n.arrivals {
		if a := &n.arrivals[i]; a.ID == id && !ok {
			m = consensus.Member{PeerURLs: a.PeerURLs}
		}
	}
	return typed.Start(name, n.joinURL(id), m.PeerURLs)
}

// joinURL is the peer URL of a member by which id can join: the leader's, if it is known.
func (n *memberNames) joinURL(id consensus.MemberID) string {
	url := "PEER_URL_OF_A_MEMBER"
	for i := range n.view.Members {
		seen := &n.view.Members[i]
		peer, _ := n.config.Member(seen.ID)
		if seen.ID == id || !seen.Active || len(peer.PeerURLs) == 0 {
			continue
		}
		if seen.ID == n.view.Leader {
			return peer.PeerURLs[0]
		}
		url = peer.PeerURLs[0]
	}
	return url
}

// unheard reports whether a member does not answer. One that was added a moment ago has the benefit of the doubt with the
// core, and not here: only what it acknowledged shows that it was started.
func unheard(m MemberView) bool {
	return !m.Active || (!m.Started && m.Match == 0 && !receivesSnapshot(m))
}

func receivesSnapshot(m MemberView) bool { return m.Snapshot != nil || m.State == "snapshot" }

// refused reports whether the member is refused: it has no data directory that it may use.
func (m *MemberView) refused() bool {
	return m.State == LostItsDisk || m.State == RolledBack || m.State == OtherHistory
}

func lag(v *View, m *MemberView) string {
	if m.Match >= v.Last {
		return "less than a round trip"
	}
	n := uint64(v.Last - m.Match)
	return plural.Of(n, "entry", "entries")
}
