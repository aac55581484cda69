package member

import (
	"context"
	"encoding/json"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// addressInterval is how often a member looks whether an address has to be put right.
const addressInterval = time.Second

// movedQuestion says where a member is now.
type movedQuestion struct {
	ID   consensus.MemberID `json:"id"`
	URLs []string           `json:"urls"`
}

type movedAnswer struct{}

// mover puts the address of its own member right, after a restart at other peer URLs.
type mover struct {
	m    *Member
	told bool // the cluster knows where this member is, or has found it where it was
}

// keepAddresses is the goroutine that does it.
func (m *Member) keepAddresses() error {
	v := mover{m: m, told: len(m.options.PeerURLs) == 0}
	return lookEvery(m.stopping, min(addressInterval, 2*m.electionTimeout()), func() {
		if m.Leader() == m.ID() {
			m.requests.DropFormer(m.stopping)
		}
		if !v.told {
			v.told = v.announce()
		}
	})
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
		ctx, cancel := context.WithTimeout(m.stopping, autopilot.StepPatience)
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

func (m *Member) movedHere(ctx context.Context, q movedQuestion) (movedAnswer, error) {
	return movedAnswer{}, m.requests.Moved(ctx, q.ID, q.URLs)
}
