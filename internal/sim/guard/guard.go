package guard

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Outcome is the judgement of a claim.
type Outcome uint8

// The outcomes.
const (
	Waits    Outcome = 0 // it is not known yet whether another life of the directory is still alive
	Welcome  Outcome = 1
	Refused  Outcome = 2
	Remember Outcome = 3 // welcome, once what the guard has seen is on disk: call Undo if that fails
)

// Listener returns when a message of an accepted life last arrived, and whether its stream is open.
type Listener func(life consensus.Life) (heard time.Duration, open bool)

// Guard is the guard of one life of a process. It belongs to the goroutine of the simulator.
type Guard struct {
	Claims    *identity.Guard
	Rules     identity.Rules
	DeadAfter time.Duration

	self   consensus.MemberID
	config consensus.Config
	inside map[consensus.StorageID]identity.Claim // the last accepted life of each directory, if it is believed
	judged map[consensus.Life]identity.Evidence   // under the configuration in force, with the evidence
	// dialled are the lives that have answered at the address of their member in this life of the process.
	dialled map[consensus.Life]bool
	begun   map[consensus.Life]time.Duration // when a waiting claim arrived
	met     map[consensus.MemberID]identity.Claim
}

// New returns the guard of a process that claims own and remembers seen.
func New(own identity.Claim, seen []identity.Seen, rules identity.Rules, deadAfter time.Duration) *Guard {
	return &Guard{
		Claims: identity.NewGuard(own, seen, rules), Rules: rules, DeadAfter: deadAfter, self: own.Member,
		inside: map[consensus.StorageID]identity.Claim{}, judged: map[consensus.Life]identity.Evidence{},
		dialled: map[consensus.Life]bool{}, begun: map[consensus.Life]time.Duration{},
		met: map[consensus.MemberID]identity.Claim{},
	}
}

// Configure sets the configuration in force. All accepted claims are judged again.
func (g *Guard) Configure(config *consensus.Config) {
	g.config = config.Clone()
	g.Claims.Configure(g.config.Members)
	clear(g.judged)
	for id := range g.met {
		if !g.config.Contains(id) {
			delete(g.met, id)
		}
	}
}

// Judge judges the claim of an arriving message.
func (g *Guard) Judge(
	c *identity.Claim, evidence identity.Evidence, now time.Duration, listen Listener,
) (Outcome, *identity.Refusal) {
	if before, judged := g.judged[c.Life]; judged && evidence <= before {
		return Welcome, nil
	}
	speaker, decided := g.speaker(c, now, listen)
	if !decided {
		return Waits, nil
	}
	delete(g.begun, c.Life)
	refusal, remember := g.Claims.Meet(c, evidence, speaker)
	if refusal != nil {
		if evidence.Believed(g.Rules) && refusal.Reason.Final() && refusal.Reason != identity.Cloned {
			delete(g.met, c.Member)
		}
		return Refused, refusal
	}
	if before := g.inside[c.Storage]; before.Life != c.Life && evidence.Believed(g.Rules) {
		delete(g.judged, before.Life)
	}
	if g.judged[c.Life] = evidence; evidence.Believed(g.Rules) {
		g.inside[c.Storage] = *c
	}
	if evidence == identity.Dialled {
		g.dialled[c.Life] = true
	}
	if g.config.Contains(c.Member) && evidence.Believed(g.Rules) {
		g.met[c.Member] = *c
	}
	if remember {
		return Remember, nil
	}
	return Welcome, nil
}

// Undo forgets a welcome that could not be remembered on disk.
func (g *Guard) Undo(c *identity.Claim) {
	delete(g.judged, c.Life)
	delete(g.dialled, c.Life)
}

// speaker finds out whether another life of the claimed directory is still alive, by identity.StillSpeaks.
func (g *Guard) speaker(c *identity.Claim, now time.Duration, listen Listener) (speaker identity.Speaker, decided bool) {
	other, known := g.inside[c.Storage]
	if !known || other.Life == c.Life {
		return identity.Speaker{}, true
	}
	heard, open := listen(other.Life)
	if !open {
		return identity.Speaker{}, true
	}
	begun, waits := g.begun[c.Life]
	if !waits {
		begun = now
		g.begun[c.Life] = now
	}
	speaks, decided := identity.StillSpeaks(int64(begun), int64(heard), int64(now), int64(g.DeadAfter))
	if speaks {
		return identity.Speaker{Life: other.Life, Address: other.Address}, true
	}
	return identity.Speaker{}, decided
}

// Admit returns, of messages that came under a claim on a stream with some evidence, those that may reach the core.
func (g *Guard) Admit(
	c *identity.Claim, evidence identity.Evidence, messages []consensus.Message,
) ([]consensus.Message, *identity.Refusal) {
	proved := evidence.Believed(g.Rules) && g.Claims.Proved(c)
	return g.receiver().Admit(c.Member, c.Storage, proved, messages)
}

func (g *Guard) receiver() identity.Receiver {
	return identity.Receiver{Self: g.self, Known: &g.config, Rules: g.Rules}
}

// Joins reports whether the process knows no configuration that contains it.
func (g *Guard) Joins() bool { return !g.config.Contains(g.self) }

// Hears reports whether calls of a process outside of message streams are accepted: its claim is proved, or this process joins.
func (g *Guard) Hears(c *identity.Claim, evidence identity.Evidence) bool {
	return g.receiver().Hears(c.Member, evidence.Believed(g.Rules) && g.Claims.Proved(c))
}

// Dialled reports whether a life has answered at the address of its member: since then its streams are known.
func (g *Guard) Dialled(life consensus.Life) bool { return g.dialled[life] }

// Believes reports whether a life is the last accepted one of its data directory, with evidence.
func (g *Guard) Believes(c *identity.Claim) bool { return g.inside[c.Storage].Life == c.Life }

// Distrust refuses the directory of a member, and reports whether that must be remembered.
func (g *Guard) Distrust(id consensus.MemberID) bool {
	c, known := g.met[id]
	if !known || !g.Claims.Distrust(id, c.Storage) {
		return false
	}
	delete(g.judged, c.Life)
	delete(g.inside, c.Storage)
	return true
}

// Met returns the claims of the members of the configuration that were accepted last.
func (g *Guard) Met() []identity.Claim {
	var all []identity.Claim
	for i := range g.config.Members {
		if c, ok := g.met[g.config.Members[i].ID]; ok {
			all = append(all, c)
		}
	}
	return all
}

// Line is a member's answer to a process that claims id and shows a storage id: the binding of that id.
func (g *Guard) Line(id consensus.MemberID, shown consensus.StorageID) []identity.Bound {
	if m, ok := g.config.Member(id); ok {
		return identity.Line(&m, shown)
	}
	return nil
}

// Knows reports whether the cluster is known here.
func (g *Guard) Knows() bool { return len(g.config.Members) > 0 }
