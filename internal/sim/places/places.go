package places

import (
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Kind is the kind of place at an address.
type Kind uint8

// The kinds. At an address without a place, the host refuses connections.
const (
	Nobody     Kind = iota
	Silence         // no answer
	Mute            // a process answers, and names neither cluster nor member
	Program         // a program that is no member
	Foreign         // the peer port of a member of another cluster
	ClientPort      // of a machine
	PeerPort        // of a machine
	Ghost           // a process without data that was started as the member that is sought
)

func (k Kind) String() string {
	return [...]string{"nobody", "silence", "a mute process", "another program", "another cluster", "a client port",
		"a peer port", "a process without data"}[k]
}

// Place is the place at an address.
type Place struct {
	Kind    Kind
	Machine int // of ClientPort and PeerPort
}

// Map maps addresses to places. The zero value is an empty world.
type Map struct{ settled, diverted map[string]Place }

// Settle puts a place at a peer URL. A machine with its peer port there has its client port beside it.
func (m *Map) Settle(url string, p Place) {
	if m.settled == nil {
		m.settled, m.diverted = map[string]Place{}, map[string]Place{}
	}
	m.settled[url] = p
}

// Divert makes an address lead to another place, until Restore.
func (m *Map) Divert(url string, p Place) { m.diverted[url] = p }

// Restore ends a diversion.
func (m *Map) Restore(url string) { delete(m.diverted, url) }

// Diverted reports whether an address leads to another place than the settled one.
func (m *Map) Diverted(url string) bool {
	_, diverted := m.diverted[url]
	return diverted
}

const peerPort, clientPort = ":2380", ":2379"

// ClientURL is the client URL of the machine at a peer URL.
func ClientURL(peer string) string { return strings.TrimSuffix(peer, peerPort) + clientPort }

// At returns the place at an address.
func (m *Map) At(url string) Place {
	if p, diverted := m.diverted[url]; diverted {
		return p
	}
	if p, settled := m.settled[url]; settled {
		return p
	}
	if host, client := strings.CutSuffix(url, clientPort); client {
		if p := m.At(host + peerPort); p.Kind == PeerPort {
			return Place{ClientPort, p.Machine}
		}
	}
	return Place{}
}

// otherCluster is the cluster of members at places of kind Foreign.
const otherCluster consensus.ClusterID = 0x52

// Process is the process on the machine of a place, as far as it answers.
type Process struct {
	Claim   *identity.Claim // nil: it does not run
	Reached bool            // its answers arrive
}

// Sight is the result of a search for a member at a place. process is that of the machine there, if there is one, or the ghost.
func (p Place) Sight(id consensus.MemberID, process Process) identity.Sight {
	switch p.Kind {
	case Nobody:
		return identity.Sight{Refused: true}
	case Mute:
		return identity.Sight{Claim: &identity.Claim{}}
	case Program:
		return identity.Sight{NoPeerPort: true}
	case Foreign: // its ids may be the same
		return identity.Sight{Claim: &identity.Claim{Cluster: otherCluster, Member: id}}
	case Ghost:
		return identity.Sight{Claim: process.Claim}
	case ClientPort, PeerPort:
		switch {
		case !process.Reached:
			return identity.Sight{}
		case process.Claim == nil:
			return identity.Sight{Refused: true}
		case p.Kind == ClientPort:
			return identity.Sight{NoPeerPort: true}
		}
		return identity.Sight{Claim: process.Claim}
	}
	return identity.Sight{}
}
