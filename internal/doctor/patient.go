package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
)

// Faults are why the collector got no observation of a member.
const (
	FaultRefused     = "refused"     // no process accepts connections there
	FaultUnreachable = "unreachable" // nothing answers at all
	FaultSilent      = "silent"      // a process accepts connections and says nothing
	FaultClosed      = "closed"      // a process accepts connections and closes them before it says anything
	FaultUnresolved  = "unresolved"  // the name of its endpoint does not resolve
	FaultAuthority   = "authority"   // its certificate is of no authority that the collector trusts
	FaultTLS         = "tls"         // another failure of TLS
	FaultNoEndpoint  = "no-endpoint" // it never said where it serves clients
	FaultUnsupported = "unsupported" // it knows no such call
	FaultDenied      = "denied"      // the user of the collector may not ask
	FaultLong        = "long"        // its answer is longer than any that a member gives
	FaultOther       = "other"       // another process answers: of another cluster, or another member
	FaultUnlinked    = "unlinked"    // its process runs, and the member that collected has no connection to it
	FaultBusy        = "busy"        // its process answers the member that collected, and does not say in time what it observes
)

// PeerUntrusted is the fault of a link whose other end shows a certificate that is not taken, or does not take ours.
const PeerUntrusted = "untrusted"

// peerUnresolved is the fault of a link to a member whose name does not resolve.
const peerUnresolved = "unresolved"

// away are the faults of a member that may be down, and gone those of one that is down or hangs as a member sees it: what a
// member does not reach may be cut off from it.
var (
	away = []string{FaultRefused, FaultUnreachable, FaultSilent, FaultClosed, FaultUnresolved}
	gone = []string{FaultRefused, FaultSilent}
)

// patient is a cluster under examination: what was collected, put side by side.
type patient struct {
	alone   bool
	linked  bool  // a member asked the others over links between members
	by      *seat // that member; nil: there is none, or it has no seat
	seats   []*seat
	config  *quoratepb.ObservedConfig // the latest, of the member that has applied most; never nil
	voters  []*seat                   // of the new set while the configuration is joint
	old     []*seat                   // then: of the old one, as far as members tell it
	leader  *seat                     // that answered, of the highest term; nil: none did
	fit     int                       // voters that a commit can count on
	quorum  int
	clocked int64 // election timeout in milliseconds, the longest that a member has
	byID    map[uint64]*seat
	mesh    []*seat // see meshed
}

// seat is a member of the configuration, with what it says itself.
type seat struct {
	*quoratepb.CollectedMember
	known  *quoratepb.ObservedMember // in the configuration; nil: it is not there
	o      *quoratepb.Observation    // nil: it did not answer
	asked  bool
	absent bool // it does not take part in commits, as far as is known
	peers  map[uint64]*quoratepb.ObservedPeer
	missed bool // see unreached
}

// examine puts observations side by side.
func examine(c *quoratepb.Collected) *patient {
	c = Trimmed(c)
	p := &patient{alone: c.GetAlone(), linked: c.GetByMember() != 0, config: Latest(c)}
	for _, m := range c.GetMembers() {
		if m.GetFault() == "" {
			p.clocked = max(p.clocked, m.GetObservation().GetElectionMs())
		}
	}
	if p.clocked == 0 {
		p.clocked = 1000
	}
	for _, known := range p.config.GetMembers() {
		p.seats = append(p.seats, &seat{known: known, CollectedMember: &quoratepb.CollectedMember{Id: known.Id,
			Name: known.Name}})
	}
	for _, m := range c.GetMembers() {
		p.take(m)
	}
	slices.SortStableFunc(p.seats, func(a, b *seat) int { return cmp.Compare(a.name(), b.name()) })
	p.index()
	p.by = p.byID[c.GetByMember()]
	for _, s := range p.seats {
		if s.known.GetVoter() {
			p.voters = append(p.voters, s)
		}
		if s.known.GetOutgoing() {
			p.old = append(p.old, s)
		}
		leads := s.o.GetCore().GetLeader() == s.Id && s.o != nil && s.Id != 0
		if leads && (p.leader == nil || s.o.GetCore().GetTerm() > p.leader.o.GetCore().GetTerm()) {
			p.leader = s
		}
	}
	p.quorum = len(p.voters)/2 + 1
	p.countFit()
	p.mesh = p.meshed()
	for _, s := range p.answered() {
		s.missed = p.unreached(s)
	}
	return p
}

// Latest is the latest configuration that a member which answered knows, with what members have published; never nil.
func Latest(c *quoratepb.Collected) *quoratepb.ObservedConfig {
	latest, applied := &quoratepb.ObservedConfig{}, uint64(0) // by the member that it is of
	for _, m := range c.GetMembers() {
		o := m.GetObservation()
		if m.GetFault() != "" || o.GetConfig() == nil {
			continue
		}
		// A member that has just started has the configuration from its log, and lacks what others have published since.
		later := cmp.Or(cmp.Compare(o.GetConfig().GetIndex(), latest.GetIndex()),
			cmp.Compare(o.GetCore().GetApplied(), applied))
		if later >= 0 {
			latest, applied = o.GetConfig(), o.GetCore().GetApplied()
		}
	}
	return latest
}

// index makes seats, and what each knows of the others, be found by id. Of two with one id the first counts.
func (p *patient) index() {
	p.byID = make(map[uint64]*seat, len(p.seats))
	for _, s := range p.seats {
		if p.byID[s.Id] == nil {
			p.byID[s.Id] = s
		}
		s.peers = make(map[uint64]*quoratepb.ObservedPeer, len(s.o.GetPeers()))
		for _, peer := range s.o.GetPeers() {
			if s.peers[peer.GetId()] == nil {
				s.peers[peer.GetId()] = peer
			}
		}
	}
}

// take gives a seat what was collected of it. Of what is not in the configuration only the answer counts.
func (p *patient) take(m *quoratepb.CollectedMember) {
	at := slices.IndexFunc(p.seats, func(s *seat) bool { return m.GetId() != 0 && s.Id == m.GetId() && !s.asked })
	if at < 0 {
		if m.GetFault() == FaultOther || len(p.config.GetMembers()) == 0 {
			s := &seat{CollectedMember: m, asked: true}
			if m.GetFault() == "" {
				s.o = m.GetObservation()
			}
			p.seats = append(p.seats, s)
		}
		return
	}
	s := p.seats[at]
	name := s.name()
	s.CollectedMember, s.asked = m, true
	if m.GetName() == "" {
		s.CollectedMember = &quoratepb.CollectedMember{Id: m.GetId(), Name: name, Endpoint: m.GetEndpoint(),
			Fault:     m.GetFault(),
			FaultText: m.GetFaultText(), AskedMs: m.GetAskedMs(), RoundTripUs: m.GetRoundTripUs(),
			Observation: m.GetObservation()}
	}
	if m.GetFault() == "" {
		s.o = m.GetObservation()
	}
}

// link is whether one member that answered reaches another one that did.
func (p *patient) link(from, to *seat) (up, known bool) {
	peer := from.peer(to.Id)
	if peer == nil || !p.grown(from, 10) || !p.grown(to, 10) {
		return false, false
	}
	return peer.GetConnected(), true
}

// meshed are the members of the configuration that answered and are not left out by all the others for their data.
func (p *patient) meshed() []*seat {
	return slices.DeleteFunc(p.answered(), func(s *seat) bool {
		return s.known == nil || s.o.GetCore().GetSuperseded() != "" || strings.Contains(p.followed(s).GetState(), " ")
	})
}

// unreached reports whether all others that answered fail to reach a member, which reaches one of them.
func (p *patient) unreached(s *seat) bool {
	others, reaches := 0, false
	for _, other := range p.mesh {
		if other == s {
			continue
		}
		up, known := p.link(other, s)
		if up || !known || slices.Contains([]string{"", PeerUntrusted}, other.peer(s.Id).GetFault()) {
			return false
		}
		back, _ := p.link(s, other)
		reaches = reaches || back
		others++
	}
	return others > 1 && reaches
}

// countFit counts the voters that a commit can count on: the leader's word is worth more than the collector's.
func (p *patient) countFit() {
	for _, s := range p.seats {
		if !votes(s.known) {
			continue
		}
		peer := p.followed(s)
		switch {
		case s == p.leader:
		case peer != nil:
			s.absent = !peer.GetActive()
		case p.leader != nil, p.follow(s): // the leader does not tell, or it is the leader that does not answer
			s.absent = false
		case p.alone:
			s.absent = false
		case p.linked:
			s.absent = s.o == nil && s.asked && slices.Contains(gone, s.GetFault())
		default:
			s.absent = s.o == nil && s.asked && slices.Contains(away, s.GetFault())
		}
	}
	p.fit = present(p.voters)
}

// votes reports whether a member votes, in either set.
func votes(m *quoratepb.ObservedMember) bool { return m.GetVoter() || m.GetOutgoing() }

// present counts the voters of a set that take part in commits.
func present(voters []*seat) (n int) {
	for _, s := range voters {
		if !s.absent {
			n++
		}
	}
	return n
}

// follow reports whether members that answered follow a member: they hear it, whether the collector does or not.
func (p *patient) follow(s *seat) bool {
	return slices.ContainsFunc(p.answered(), func(other *seat) bool {
		return other.o.GetCore().GetLeader() == s.Id && other.peer(s.Id).GetConnected()
	})
}

// followed is what the leader knows of a member; nil: nothing.
func (p *patient) followed(s *seat) *quoratepb.ObservedPeer {
	if p.leader == nil || s == p.leader {
		return nil
	}
	if peer := p.leader.peer(s.Id); peer.GetFollowed() {
		return peer
	}
	return nil
}

// tolerates is how many more voters may fail, of the set that survives fewer failures.
func (p *patient) tolerates() int {
	left := p.fit - p.quorum
	if len(p.old) > 0 {
		left = min(left, present(p.old)-(len(p.old)/2+1))
	}
	return left
}

// weight is the severity of a voter that does not take part, or of a learner.
func (p *patient) weight(s *seat) Severity {
	if votes(s.known) && p.tolerates() <= 0 && len(p.voters) > 1 {
		return NextFailure
	}
	return SlowerThanIs
}

// latest is the observation of the member that has applied most: of replicated state the others know less. Members that the
// cluster was recovered without count only if no others answered.
func (p *patient) latest() *quoratepb.Observation {
	var best *quoratepb.Observation
	rank := func(o *quoratepb.Observation) uint64 {
		if o.GetCore().GetSuperseded() != "" {
			return 0
		}
		return 1 + o.GetCore().GetApplied()
	}
	for _, s := range p.answered() {
		if best == nil || rank(s.o) > rank(best) {
			best = s.o
		}
	}
	return best
}

// started reports whether a member has ever started, as far as any member knows: one that is behind does not know it yet.
func (p *patient) started(s *seat) bool {
	if s.known.GetStarted() || p.followed(s).GetActive() {
		return true
	}
	return slices.ContainsFunc(p.answered(), func(other *seat) bool {
		return slices.ContainsFunc(other.o.GetConfig().GetMembers(), func(m *quoratepb.ObservedMember) bool {
			return m.GetId() == s.Id && m.GetStarted()
		})
	})
}

// answered are the seats with an observation.
func (p *patient) answered() []*seat {
	return slices.DeleteFunc(slices.Clone(p.seats), func(s *seat) bool { return s.o == nil })
}

// name is how a member is called.
func (s *seat) name() string {
	return cmp.Or(s.CollectedMember.GetName(), s.known.GetName(), s.o.GetName(), strconv.FormatUint(s.Id, 16),
		s.GetEndpoint())
}

// peer is what a member knows of another one; nil: nothing.
func (s *seat) peer(id uint64) *quoratepb.ObservedPeer { return s.peers[id] }

// nameOf is how the member of an id is called.
func (p *patient) nameOf(id uint64) string {
	if s := p.byID[id]; s != nil {
		return s.name()
	}
	return strconv.FormatUint(id, 16)
}

// grown reports whether a member runs for so many election timeouts, before which it may not have met the others.
func (p *patient) grown(s *seat, elections int64) bool { return s.o.GetUpMs() >= elections*p.clocked }

// settled reports whether what a member applied in its window is what committed in it: one that has started within the window,
// or catches up, applies what committed before.
func (p *patient) settled(s *seat) bool {
	return s.o.GetUpMs() >= s.o.GetWindowMs()+10*s.o.GetElectionMs()
}

// names are the names of seats.
func names(seats []*seat) (out []string) {
	for _, s := range seats {
		out = append(out, s.name())
	}
	return out
}

// heardByNone reports whether no member that answered has a connection to a member.
func (p *patient) heardByNone(s *seat) bool {
	return !slices.ContainsFunc(p.answered(), func(other *seat) bool {
		peer := other.peer(s.Id)
		return peer.GetConnected() && peer.GetReceived() > 0 && peer.GetActive()
	})
}

// downText is why a member counts as down.
func (p *patient) downText(s *seat) string {
	if s.GetFault() == "" {
		return "the leader does not hear it"
	}
	text := s.GetEndpoint() + " says " + s.GetFaultText()
	if s.GetFault() == FaultClosed {
		text = s.GetEndpoint() + " accepts connections and closes them: perhaps a proxy with nothing behind it"
	}
	if p.leader != nil {
		text += ", and the leader does not hear it"
	}
	return text
}
