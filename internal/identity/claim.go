package identity

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// Claim is what a process says of itself when it connects, and when another process connects to it.
type Claim struct {
	Cluster consensus.ClusterID
	Epoch   consensus.Epoch
	Member  consensus.MemberID
	Storage consensus.StorageID
	Life    consensus.Life
	// Address is the peer URL under which it wants to be reached; may be empty. It decides nothing.
	Address string
	// Empty says that the process has no data of the member: it only has the id from its flags, and has founded or joined
	// nothing with this directory yet.
	Empty bool `json:",omitempty"`
}

func (c *Claim) String() string {
	return fmt.Sprintf("member %v of cluster %v, epoch %v, data directory %v, start %v, at %s", c.Member, c.Cluster, c.Epoch,
		c.Storage, c.Life, c.address())
}

func (c *Claim) address() string {
	if c.Address == "" {
		return "an unknown address"
	}
	return c.Address
}

// Reason says why a claim is refused. Its text is the label of metrics, and stays the same for ever.
type Reason uint8

// The reasons.
const (
	Welcome        Reason = 0
	ForeignCluster Reason = 1
	OtherEpoch     Reason = 2
	WrongMember    Reason = 3 // another one is wanted here, or it bears this member's own id
	LostDisk       Reason = 4 // the member is bound to another data directory
	RolledBack     Reason = 5 // the data directory is older than what was seen of it
	Cloned         Reason = 6 // the data directory is in use by two processes
	Anonymous      Reason = 7 // it has no identity, and asks for more than which member is there
	Unbound        Reason = 8 // it is not bound yet, and asks for what only a member may
	NewerVersion   Reason = 9
	// WrongCertificate: it shows one that is not for where it is, or for where the member is.
	WrongCertificate Reason = 10
	// OtherHistory: it refuses this member against what this one has applied, see Obey, and is not bound here.
	OtherHistory Reason = 11
	// Unproved: no process answers for it at the address that the configuration has of the member, and it shows no
	// certificate.
	Unproved Reason = 12
	Reasons  int    = 13 // how many there are
)

var reasonNames = [Reasons]string{"none", "foreign-cluster", "other-epoch", "wrong-member", "lost-disk", "rolled-back",
	"cloned", "anonymous", "unbound", "newer-version", "wrong-certificate",
	"other-history", "unproved"}

func (r Reason) String() string {
	if int(r) < Reasons {
		return reasonNames[r]
	}
	return "unknown"
}

// ParseReason returns the reason called name; Welcome if there is none.
func ParseReason(name string) Reason {
	for i, known := range reasonNames {
		if known == name {
			return Reason(i)
		}
	}
	return Welcome
}

// Final reports whether the refused process can never be the member that it says: its data directory is of no use to it.
func (r Reason) Final() bool { return r == LostDisk || r == RolledBack || r == Cloned }

// Refusal is the answer to a claim that is not accepted: what is wrong, what was expected, and what to do.
type Refusal struct {
	Reason Reason
	Text   string
}

// Error implements error. The reason comes first, so that the other side can read it back: Read.
func (r *Refusal) Error() string { return fmt.Sprintf("refused (%v): %s", r.Reason, r.Text) }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Read finds the refusal in the text of an error that came from the other side; nil if it holds none.
func Read(text string) *Refusal {
	_, rest, found := strings.Cut(text, "refused (")
	if !found {
		return nil
	}
	name, said, found := strings.Cut(rest, "): ")
	if reason := ParseReason(name); found && reason != Welcome {
		return &Refusal{Reason: reason, Text: said}
	}
	return nil
}
