package filter

// Reason says why a message was dropped that no member of a sound cluster sends, or that came from a member whose
// term is over. The counts are for a metric and for the operator who has to find out which member misbehaves.
type Reason uint8

// The reasons.
const (
	BelowCommit Reason = 0 // a leader's log differs from what is committed here
	ForeignLog  Reason = 1 // a follower acknowledges what this leader's log does not have
	NonMember   Reason = 2 // the sender is no member, and non-members do not send that kind
	Malformed   Reason = 3 // no member can mean it: entries with gaps, an unknown kind, numbers beyond reason
	TermJump    Reason = 4 // its term is further ahead than elections get
	Leader      Reason = 5 // another member leads this term
	Removal     Reason = 6 // it says that this member was removed, whose leader and quorum are alive
	ReadAnswer  Reason = 7 // an answer to a read that its sender was not asked for
)

// Reasons is how many reasons there are.
const Reasons = 8

var reasonTexts = [Reasons]string{
	"below_commit", "foreign_log", "non_member", "malformed", "term_jump", "second_leader", "removal", "read_answer",
}

// String returns the reason as metrics name it.
func (r Reason) String() string { return reasonTexts[r] }

// Counts counts messages that were dropped, by reason.
type Counts [Reasons]uint64

// Count counts one message more.
func (c *Counts) Count(why Reason) { c[why]++ }
