package identity

import (
	"fmt"
	"net/url"

	"github.com/quorate/quorate/internal/consensus"
)

// The rule of evidence, for everything that a process says of itself:
//
//  1. It counts only if this member dialled an address of its own configuration, or of its tombstones, and was answered
//     there, or if the certificate of the connection is bound to the member that the process calls itself: Evidence.Believed.
//  2. A member is present where an answer names its cluster and its id, and says that it has the member's data; it is absent
//     where an answer names another cluster or id, or comes from a process that has no data, or another directory than the one
//     to which the member is bound: Presence. A refused connection, silence, an unknown method, and any other program prove
//     neither. Only an operator, who names the member, decides what they leave open.
//  3. A claim that is not believed may make this member dial the configured address of the member that was named, and ask
//     there.
//  4. A member that hears no leader asks where the others are, at addresses of its own configuration only. A member of its
//     cluster, epoch and configuration may tell it there of a later committed configuration, its members and their addresses.
//     It dials these beside those of its own one, until this is as new: from such a member it would take the log, which says
//     the same. An address that was learned so counts as one of the configuration in rule 1, but a process there is not asked
//     for more. Nothing that a caller says adds one.
//  5. Nothing is heard in the name of an id that no configuration of the log has, and that was not learned by rule 4: Receiver.
//     A process that is in no configuration that it knows joins, and hears any member that feeds it.

// Evidence is how a member came by what a process says of itself.
type Evidence uint8

// The kinds of evidence.
const (
	// Said: the process opened the connection, and nothing proves that it is who it says.
	Said Evidence = 0
	// Certified: the process opened the connection, and its certificate names a host at which the configuration of this
	// member has the member that the process calls itself.
	Certified Evidence = 1
	// Dialled: this member opened the connection, to an address that its configuration or its tombstones have; or the process
	// opened it, and the process that answers at such an address confirms the stream.
	Dialled Evidence = 2
)

// Believed reports whether what a process says of itself counts.
func (e Evidence) Believed(rules Rules) bool { return e != Said || rules.BelieveAnybody }

// Presence is what a look at one address has found.
type Presence uint8

// The findings. Their order is that of what they say against an address: see Worse.
const (
	Silent  Presence = 0 // the host refuses the connection: no process listens there now
	Present Presence = 1 // an answer names the cluster and the member, and does not say that it has no data
	Another Presence = 2 // an answer names another member, another cluster, or another data directory: the member is not there
	// Empty is a process that was started as the member and does not have its data: it never votes with what the member had,
	// and the member may run elsewhere.
	Empty  Presence = 3
	Unsure Presence = 4 // a process listens and does not say which member it is, or the host cannot be reached
	// NoPeerPort is a process that speaks and is no peer port: a client port, another gRPC server, a web server, or one that
	// wants TLS where the URL has none. The URL is wrong, which says nothing about the member.
	NoPeerPort Presence = 5
)

// Misleads reports whether no member can ever be reached where this was found, as far as its process stays there.
func (p Presence) Misleads() bool { return p == Another || p == Empty || p == NoPeerPort }

// Sought is a member that is looked for.
type Sought struct {
	Cluster consensus.ClusterID
	Member  consensus.MemberID
	Storage consensus.StorageID // to which the configuration binds it; zero: to none yet
}

// OtherStorage stands for a data directory that is not the one that is sought, and need not be known.
var OtherStorage = consensus.StorageID{0xff}

// Recognise judges an answer from the address of a member: it has to name the cluster and the member that are sought, and to
// have the data directory of that member, as far as it tells. An answer that names no member proves nothing. One that has the
// directory to which the member is bound is the member, also before it has made its data there.
func Recognise(sought Sought, answer *Claim) Presence {
	told := !sought.Storage.IsZero() && !answer.Storage.IsZero()
	switch {
	case answer.Cluster == 0 || answer.Member == consensus.NoMember:
		return Unsure
	case answer.Cluster != sought.Cluster || answer.Member != sought.Member:
		return Another
	case told && answer.Storage == sought.Storage:
		return Present
	case answer.Empty:
		return Empty
	case told:
		return Another
	}
	return Present
}

// EmptyAt says what an Empty look at a URL has found, and where to stop it. It ends a sentence, or a part of one.
func EmptyAt(name, at string) string {
	return fmt.Sprintf("a process without data, which was started as %s, runs at %s (stop its unit on host %s)", name, at,
		hostOf(at))
}

func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return text
}
