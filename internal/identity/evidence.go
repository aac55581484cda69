package identity

import "github.com/quorate/quorate/internal/consensus"

// The rule of evidence, for everything that a process says of itself:
//
//  1. It counts only if this member dialled an address of its own configuration, or of its tombstones, and was answered
//     there, or if the certificate of the connection is bound to the member that the process calls itself: Evidence.Believed.
//  2. A member is present where an answer names its cluster and its id, and absent where an answer names somebody else:
//     Presence. A refused connection, silence, an unknown method, and any other program prove neither. What they leave open
//     only an operator decides, who names the member.
//  3. What is not believed may make this member dial the configured address of the member that was named, and ask there.
//  4. A member that hears no leader asks where the others are, at addresses of its own configuration only. What a member of
//     its cluster, epoch and configuration says there of a later committed configuration is dialled beside the own one, for
//     members that this has, and until this is as new: from such a member it would take the log, which says the same. An
//     address that was learned so counts as one of the configuration in rule 1, and nobody is asked there for more. Nothing
//     that a caller says adds one.

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
	// opened it, and who answers at such an address confirms the stream.
	Dialled Evidence = 2
)

// Believed reports whether what a process says of itself counts.
func (e Evidence) Believed(rules Rules) bool { return e != Said || rules.BelieveAnybody }

// Presence is what a look at one address has found.
type Presence uint8

// The findings. Their order is that of what they say against an address: see Worse.
const (
	Silent  Presence = 0 // the host refuses the connection: nobody listens there now
	Present Presence = 1 // an answer names the cluster and the member
	Another Presence = 2 // an answer names another member, or another cluster: the member is not there
	Unsure  Presence = 3 // somebody listens and does not say who, or the host cannot be reached
	// NoPeerPort is a process that speaks and is no peer port: a client port, another gRPC server, a web server, or one that
	// wants TLS where the URL has none. The URL is wrong, which says nothing about the member.
	NoPeerPort Presence = 4
)

// Misleads reports whether no member can ever be reached where this was found, as far as its process stays there.
func (p Presence) Misleads() bool { return p == Another || p == NoPeerPort }

// Recognise judges an answer from the address of a member: it has to name the cluster and the member that are sought. An
// answer that names nobody proves nothing.
func Recognise(cluster consensus.ClusterID, id consensus.MemberID, answer *Claim) Presence {
	switch {
	case answer.Cluster == 0 || answer.Member == consensus.NoMember:
		return Unsure
	case answer.Cluster == cluster && answer.Member == id:
		return Present
	}
	return Another
}
