package identity

import "github.com/quorate/quorate/internal/consensus"

// Sight is what a look at one address has met there. All that is zero: the host is not reached, or a process listens and says
// nothing that is understood.
type Sight struct {
	Refused    bool     // the host refuses the connection
	Claim      *Claim   // the process says so of itself
	Refusal    *Refusal // the process refuses the question, in the words of a member
	NoPeerPort bool     // the process speaks, and is no peer port
}

// Judge tells what a sight says of a member that is looked for.
func (s *Sight) Judge(sought Sought, rules Rules) Presence {
	if rules.IgnoreBinding {
		sought.Storage = consensus.NoStorage
	}
	switch {
	case s.Refused:
		return Silent
	case rules.AnyAnswerCounts && (s.Claim != nil || s.Refusal != nil || s.NoPeerPort):
		return Present
	case s.Claim != nil:
		return Recognise(sought, s.Claim)
	case s.Refusal != nil && (s.Refusal.Reason == ForeignCluster || s.Refusal.Reason == WrongMember):
		return Another
	case s.NoPeerPort:
		return NoPeerPort
	}
	return Unsure
}
