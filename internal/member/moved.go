package member

import (
	"context"
	"encoding/json"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// addressInterval is how often a member looks whether an address has to be put right.
const addressInterval = time.Second

// movedQuestion says where a member is now.
type movedQuestion struct {
	ID   consensus.MemberID `json:"id"`
	URLs []string           `json:"urls"`
}

type movedAnswer struct{}

// mover puts addresses right: its own, after a restart at other peer URLs, and on the leader those that were not confirmed
// when they were changed.
type mover struct {
	m    *Member
	told bool // the cluster knows where this member is, or has found it where it was
}

// keepAddresses is the goroutine that does it.
func (m *Member) keepAddresses() error {
	v := mover{m: m, told: len(m.options.PeerURLs) == 0}
	return lookEvery(m.stopping, min(addressInterval, 2*m.electionTimeout()), func() {
		if m.Leader() == m.ID() {
			v.confirm()
		}
		if !v.told {
			v.told = v.announce()
		}
	})
}

// confirm drops the former URLs of members that are found at the current ones.
func (v *mover) confirm() {
	m := v.m
	config := m.configNow()
	for i := range config.Members {
		known := &config.Members[i]
		if len(known.FormerURLs) == 0 {
			continue
		}
		if presence, _ := m.addresses.Seek(m.stopping, known.ID, known.PeerURLs); presence != transport.Present {
			continue
		}
		ctx, cancel := context.WithTimeout(m.stopping, jobPatience)
		_, err := m.ChangeConfig(ctx, consensus.ChangeOne(consensus.ChangeUpdate,
			consensus.Member{ID: known.ID, PeerURLs: known.PeerURLs}))
		cancel()
		if err == nil {
			m.logger.Info("found a member at its new peer URLs", "peer", known.ID.String())
		}
	}
}

// announce tells the other members where this one is, if the configuration says something else. They are asked one after
// the other: nobody but they can be reached, for the leader does not know where to send what it has to say.
func (v *mover) announce() (told bool) {
	m := v.m
	config := m.configNow()
	self, ok := config.Member(m.ID())
	if !ok || membership.SameURLs(self.PeerURLs, m.options.PeerURLs) {
		return ok
	}
	q := movedQuestion{ID: m.ID(), URLs: m.options.PeerURLs}
	if m.Leader() == m.ID() {
		_, err := m.movedHere(m.stopping, q)
		return err == nil
	}
	body, err := json.Marshal(question[movedQuestion]{Asked: q})
	if err != nil {
		return true
	}
	for i := range config.Members {
		to := config.Members[i].ID
		if to == m.ID() {
			continue
		}
		ctx, cancel := context.WithTimeout(m.stopping, jobPatience)
		raw, err := m.transport.Call(ctx, to, methodMoved, body)
		cancel()
		if err == nil {
			_, err = openReply[movedAnswer](raw)
		}
		if err == nil {
			m.logger.Info("told the cluster where this member is", "urls", q.URLs)
			return true
		}
		m.logger.Warn("could not tell the cluster where this member is now", "urls", q.URLs, "asked", to.String(), "err", err)
	}
	return false
}

// moved takes what a member says of its address to the leader.
func (m *Member) moved(ctx context.Context, q movedQuestion) (movedAnswer, error) {
	return atLeader(ctx, m, methodMovedStep, q, m.movedHere)
}

// movedHere updates the address of a member that says that it moved, if it is found at the new one and not at the old one: a
// word alone moves nobody.
func (m *Member) movedHere(ctx context.Context, q movedQuestion) (movedAnswer, error) {
	spec := membership.Spec{Update: []consensus.Member{{ID: q.ID, PeerURLs: q.URLs}}}
	if err := autopilot.Valid(&spec); err != nil {
		return movedAnswer{}, err
	}
	config := m.configNow()
	known, ok := config.Member(q.ID)
	if !ok || membership.SameURLs(known.PeerURLs, q.URLs) {
		return movedAnswer{}, nil
	}
	if presence, _ := m.addresses.Seek(ctx, q.ID, known.PeerURLs); presence == transport.Present {
		return movedAnswer{}, nil
	}
	request := consensus.ChangeOne(consensus.ChangeUpdate, spec.Update[0])
	if err := m.addresses.Confirm(ctx, &request, membership.Cautious); err != nil {
		return movedAnswer{}, err
	}
	if err := m.proposeChange(ctx, &request); err != nil {
		return movedAnswer{}, err
	}
	m.logger.Info("a member has moved", "peer", q.ID.String(), "from", known.PeerURLs, "to", q.URLs)
	return movedAnswer{}, nil
}
