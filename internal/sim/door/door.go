package door

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Outcome is what became of a claim.
type Outcome uint8

// The outcomes.
const (
	Waits    Outcome = 0 // it is not known yet whether another life of the directory still speaks
	Welcome  Outcome = 1
	Refused  Outcome = 2
	Remember Outcome = 3 // welcome, once what the guard has seen is on disk: Undo if that fails
)

// Listener tells when something arrived last from a life that was welcomed, and whether its stream is open.
type Listener func(life consensus.Life) (heard time.Duration, open bool)

// Door is the door of one life of a process. It belongs to the goroutine of the simulator.
type Door struct {
	Guard     *identity.Guard
	Rules     identity.Rules
	DeadAfter time.Duration

	config consensus.Config
	inside map[consensus.StorageID]identity.Claim // who was welcomed last
	judged map[consensus.Life]bool                // under the configuration in force
	begun  map[consensus.Life]time.Duration       // when a claim came that waits
	met    map[consensus.MemberID]identity.Claim
}

// New returns the door of a process that claims own and remembers seen.
func New(own identity.Claim, seen []identity.Seen, rules identity.Rules, deadAfter time.Duration) *Door {
	return &Door{
		Guard: identity.NewGuard(own, seen, rules), Rules: rules, DeadAfter: deadAfter,
		inside: map[consensus.StorageID]identity.Claim{}, judged: map[consensus.Life]bool{},
		begun: map[consensus.Life]time.Duration{}, met: map[consensus.MemberID]identity.Claim{},
	}
}

// Configure takes over the configuration in force. All who are inside are judged again.
func (d *Door) Configure(config *consensus.Config) {
	d.config = config.Clone()
	d.Guard.Configure(d.config.Members)
	clear(d.judged)
	for id := range d.met {
		if !d.config.Contains(id) {
			delete(d.met, id)
		}
	}
}

// Judge decides about a claim that a message comes under.
func (d *Door) Judge(c *identity.Claim, now time.Duration, listen Listener) (Outcome, *identity.Refusal) {
	if d.judged[c.Life] {
		return Welcome, nil
	}
	speaker, decided := d.speaker(c, now, listen)
	if !decided {
		return Waits, nil
	}
	delete(d.begun, c.Life)
	refusal, remember := d.Guard.Meet(c, speaker)
	if refusal != nil {
		if refusal.Reason.Final() && refusal.Reason != identity.Cloned {
			delete(d.met, c.Member)
		}
		return Refused, refusal
	}
	if before := d.inside[c.Storage]; before.Life != c.Life {
		delete(d.judged, before.Life)
	}
	d.inside[c.Storage], d.judged[c.Life] = *c, true
	if d.config.Contains(c.Member) {
		d.met[c.Member] = *c
	}
	if remember {
		return Remember, nil
	}
	return Welcome, nil
}

// Undo forgets a welcome that could not be remembered on disk.
func (d *Door) Undo(c *identity.Claim) { delete(d.judged, c.Life) }

// speaker finds out whether another life of the claimed directory still speaks, as identity.StillSpeaks says.
func (d *Door) speaker(c *identity.Claim, now time.Duration, listen Listener) (speaker identity.Speaker, decided bool) {
	other, known := d.inside[c.Storage]
	if !known || other.Life == c.Life {
		return identity.Speaker{}, true
	}
	heard, open := listen(other.Life)
	if !open {
		return identity.Speaker{}, true
	}
	begun, waits := d.begun[c.Life]
	if !waits {
		begun = now
		d.begun[c.Life] = now
	}
	speaks, decided := identity.StillSpeaks(int64(begun), int64(heard), int64(now), int64(d.DeadAfter))
	if speaks {
		return identity.Speaker{Life: other.Life, Address: other.Address}, true
	}
	return identity.Speaker{}, decided
}

// Admit keeps of messages that came under a claim those that may reach the core.
func (d *Door) Admit(c *identity.Claim, messages []consensus.Message) ([]consensus.Message, *identity.Refusal) {
	return identity.Admit(&d.config, c.Member, c.Storage, messages, d.Rules)
}

// Distrust refuses the directory that speaks for a member. It reports whether that must be remembered.
func (d *Door) Distrust(id consensus.MemberID) bool {
	c, known := d.met[id]
	if !known || !d.Guard.Distrust(id, c.Storage) {
		return false
	}
	delete(d.judged, c.Life)
	delete(d.inside, c.Storage)
	return true
}

// Met returns the members of the configuration that were welcomed last.
func (d *Door) Met() []identity.Claim {
	var all []identity.Claim
	for i := range d.config.Members {
		if c, ok := d.met[d.config.Members[i].ID]; ok {
			all = append(all, c)
		}
	}
	return all
}

// Line is what a member tells a process that calls itself id and shows a storage id.
func (d *Door) Line(id consensus.MemberID, shown consensus.StorageID) []identity.Bound {
	if m, ok := d.config.Member(id); ok {
		return identity.Line(&m, shown)
	}
	return nil
}

// Knows reports whether the cluster is known here.
func (d *Door) Knows() bool { return len(d.config.Members) > 0 }
