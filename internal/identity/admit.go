package identity

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Receiver is who judges what others say: known are the members of the configurations in its log, and those that it has learned
// of, with where they are.
type Receiver struct {
	Self  consensus.MemberID
	Known *consensus.Config
	Rules Rules
}

// Hears reports whether what comes in the name of a member is heard. proved says that there is evidence of the stream, and that
// its life is the one that was met last. A member that is in no configuration has no address at which it could be asked, so
// nothing proves it: it is heard only by a process that joins, and knows no member itself.
func (r Receiver) Hears(from consensus.MemberID, proved bool) bool {
	switch {
	case r.Known.Contains(from):
		return proved
	case r.Rules.HearNonMembers:
		return true
	}
	return !r.Known.Contains(r.Self)
}

// Admit keeps of messages, which all came in the name of one member under storage, those that may reach the core of the
// receiver. proved is as for Hears. The refusal, if there is one, ends the stream: it was opened before the configuration said
// who its sender is.
func (r Receiver) Admit(
	from consensus.MemberID, storage consensus.StorageID, proved bool, messages []consensus.Message,
) ([]consensus.Message, *Refusal) {
	config, rules := r.Known, r.Rules
	binding := config.BindingOf(from, storage)
	switch {
	case binding == consensus.BindingOther && !rules.IgnoreBinding:
		m, _ := config.Member(from)
		return nil, refuse(LostDisk, "member %s was bound to data directory %v meanwhile, not to %v", from, m.Storage, storage)
	case !r.Hears(from, proved):
		return nil, nil
	case binding == consensus.BindingNonMember, binding == consensus.BindingOwn, binding == consensus.BindingOpen:
		return messages, nil
	}
	return slices.DeleteFunc(messages, func(m consensus.Message) bool { return !Counts(config, &m, storage, rules) }), nil
}

// Bindings returns the changes by which a leader binds those members to their data directories whom it has met, as met says,
// and which are not bound yet. The first bindings of a cluster bind the leader, self, to its own directory, too; fewer than a
// majority are refused by the core.
func Bindings(
	config *consensus.Config, met []Claim, self consensus.MemberID, own consensus.StorageID,
) []consensus.ChangeStep {
	if own.IsZero() {
		return nil
	}
	met = append([]Claim{{Member: self, Storage: own}}, met...)
	var steps []consensus.ChangeStep
	for i := range met {
		known, ok := config.Member(met[i].Member)
		if ok && known.Storage.IsZero() && !met[i].Storage.IsZero() {
			bound := consensus.Member{ID: known.ID, Storage: met[i].Storage}
			steps = append(steps, consensus.ChangeStep{Kind: consensus.ChangeBind, Member: bound})
		}
	}
	return steps
}

// Addressed refuses a stream that was opened to another member: a peer URL leads here that is not this member's.
func Addressed(to, self consensus.MemberID) error {
	if to == self {
		return nil
	}
	return fmt.Errorf("it wants %s, this member is %s", to, self)
}

// StillSpeaks decides whether another life of a claimed data directory counts as one that still speaks. It has a stream; heard
// is when something arrived on that last, begun when the claim came, now the present, and deadAfter the time after which a
// silent peer is taken for dead, all in one unit. While it is not decided the claim waits.
func StillSpeaks(begun, heard, now, deadAfter int64) (speaks, decided bool) {
	if heard > begun+deadAfter/16 {
		return true, true
	}
	return false, now-begun > deadAfter/2
}
