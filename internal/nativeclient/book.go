package nativeclient

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// How often a client lists the members of its cluster.
const (
	ListInterval = 30 * time.Second // while nothing happens
	ListPatience = 2 * time.Second  // bounds one listing, and one question who answers at an endpoint
	// brokenPause is the least time between two listings because connections end. It is short against the time that a
	// replacement takes.
	brokenPause = time.Second
	// stalePause is the time after which a listing is repeated that did not name all voters, or failed. It doubles up to
	// ListInterval while listings bring nothing new.
	stalePause = 250 * time.Millisecond
)

// ErrForeign means that an endpoint belongs to another cluster.
var ErrForeign = errors.New(
	"quorate: the endpoint belongs to another cluster than those before it: correct the list of endpoints")

// Place is a member and where it advertises to serve clients.
type Place struct {
	ID        uint64
	Endpoints []string
	Learner   bool
}

// Book is what a client knows of where the members of its cluster are: the endpoints that its user gave, those that members
// advertise, and which member answered where. It says when the members are to be listed, so that the client follows its
// cluster through the replacement of every member.
type Book struct {
	// Stays, a negative control, believes the endpoints that were given for ever.
	Stays bool

	cluster  uint64 // of the first member that answered; endpoints of other clusters are refused
	given    []string
	members  []Place
	whole    bool              // members are all that there are: a quorum said so
	answered map[string]uint64 // endpoint -> member that answered there last
	silent   map[string]bool   // endpoints that did not answer when they were asked last
	view     View
	said     []uint64 // the voters that a member named last, also one that knows no leader

	listed  time.Time          // when the last listing began; zero: none did
	on      consensus.ConfigID // in force then
	pause   time.Duration      // until the next one, if that one was not enough
	failed  bool               // it was not answered
	broken  bool               // a connection has ended since, or the user gave other endpoints
	examine bool               // the given endpoints are to be asked who is there
	moved   bool               // some of the given endpoints do not lead to this cluster's members any more
}

// NewBook returns the book of a client that was given endpoints and has heard no member yet.
func NewBook(given []string) *Book {
	return &Book{given: slices.Clone(given), answered: map[string]uint64{}, silent: map[string]bool{}, broken: true}
}

// Give replaces the endpoints that the user gave. It reports whether they are others than before.
func (b *Book) Give(endpoints []string) bool {
	if slices.Equal(b.given, endpoints) {
		return false
	}
	b.given, b.broken, b.examine, b.moved = slices.Clone(endpoints), true, true, false
	return true
}

// Given reports whether the user gave an endpoint.
func (b *Book) Given(endpoint string) bool { return b.amongGiven(endpoint) }

// Cluster is the id of the cluster; zero: no member has answered yet.
func (b *Book) Cluster() uint64 { return b.cluster }

// Heard notes which member answered at an endpoint, as a member of which cluster.
func (b *Book) Heard(endpoint string, cluster, member uint64) error {
	if b.cluster == 0 {
		b.cluster = cluster
	}
	if b.cluster != cluster {
		return ErrForeign
	}
	b.answered[endpoint] = member
	delete(b.silent, endpoint)
	return nil
}

// Silent notes that no member of the cluster answers at an endpoint.
func (b *Book) Silent(endpoint string) { b.silent[endpoint] = true }

// NoteStatus notes what a member says of itself and of the cluster.
func (b *Book) NoteStatus(endpoint string, s *quoratepb.MemberStatus) error {
	if err := b.Heard(endpoint, s.Cluster, s.Member); err != nil {
		return err
	}
	b.view.take(s)
	b.said = s.Voters
	return nil
}

// Leader is the leader that a member named last, in the latest term; zero: none is known.
func (b *Book) Leader() uint64 { return b.view.Leader }

// Broken notes that a connection to some member has ended: the member may be gone, and the others know who came.
func (b *Book) Broken() { b.broken, b.examine = true, true }

// Wait returns how long it is until the members are to be listed; zero: they are now.
func (b *Book) Wait(now time.Time) time.Duration {
	interval := ListInterval
	switch {
	case b.listed.IsZero():
		return 0
	case b.Stays:
	case b.on != b.view.config():
		return 0 // another configuration is in force since
	case b.broken:
		interval = max(brokenPause, b.pause)
	case b.failed || b.lacks():
		interval = b.pause
	}
	return max(0, interval-now.Sub(b.listed))
}

// lacks reports whether a voter is known by its id alone.
func (b *Book) lacks() bool {
	return slices.ContainsFunc(b.view.Voters, func(id uint64) bool { return len(b.ToMember(id, false)) == 0 })
}

// Ask notes that a listing begins now. Afterwards Listed or Unlisted must be called.
func (b *Book) Ask(now time.Time) {
	b.listed = now
	if id := b.view.config(); b.on != id || !b.broken && !b.failed && !b.lacks() {
		b.on, b.pause = id, stalePause
	} else {
		b.pause = max(stalePause, min(2*b.pause, ListInterval))
	}
	b.broken = false
}

// Unlisted notes that no member answered.
func (b *Book) Unlisted() { b.failed = true }

// Listed takes a list of the members. confirmed says that a quorum stands behind it; else a member that lags, or was removed,
// may have answered, and a member that is not in the list is not gone.
func (b *Book) Listed(cluster uint64, members []Place, confirmed bool) error {
	if b.cluster == 0 {
		b.cluster = cluster
	}
	if b.cluster != cluster {
		b.failed = true
		return ErrForeign
	}
	b.failed = false
	if b.Stays && len(b.members) > 0 {
		return nil
	}
	if !slices.EqualFunc(b.members, members, Place.equal) {
		b.examine, b.pause = true, stalePause
	}
	if confirmed {
		b.members, b.whole = members, true
		maps.DeleteFunc(b.answered, func(endpoint string, _ uint64) bool { return !b.known(endpoint) })
		maps.DeleteFunc(b.silent, func(endpoint string, _ bool) bool { return !b.known(endpoint) })
		return nil
	}
	for _, m := range members {
		if i := slices.IndexFunc(b.members, func(old Place) bool { return old.ID == m.ID }); i < 0 {
			b.members = append(b.members, m)
		} else if len(m.Endpoints) > 0 {
			b.members[i] = m
		}
	}
	return nil
}

func (m Place) equal(other Place) bool {
	return m.ID == other.ID && m.Learner == other.Learner && slices.Equal(m.Endpoints, other.Endpoints)
}

// known reports whether an endpoint was given, or is advertised.
func (b *Book) known(endpoint string) bool {
	return b.amongGiven(endpoint) || slices.ContainsFunc(b.members, func(m Place) bool {
		return slices.Contains(m.Endpoints, endpoint)
	})
}

// bare is an endpoint without its scheme.
func bare(endpoint string) string {
	if _, after, found := strings.Cut(endpoint, "://"); found {
		return after
	}
	return endpoint
}

func (b *Book) amongGiven(endpoint string) bool {
	return slices.ContainsFunc(b.given, func(given string) bool { return bare(given) == bare(endpoint) })
}

// ToMember returns the endpoints to try for a member: where it answered last, what it advertises and, with guess, the given
// ones at which no member has answered yet.
func (b *Book) ToMember(id uint64, guess bool) []string {
	var all []string
	add := func(endpoint string) {
		if !slices.Contains(all, endpoint) {
			all = append(all, endpoint)
		}
	}
	for _, endpoint := range slices.Sorted(maps.Keys(b.answered)) {
		if b.answered[endpoint] == id {
			add(endpoint)
		}
	}
	for _, endpoint := range b.given {
		if guess && b.answered[endpoint] == 0 {
			add(endpoint)
		}
	}
	for _, m := range b.members {
		for _, endpoint := range m.Endpoints {
			if m.ID == id {
				add(endpoint)
			}
		}
	}
	return all
}

// Writes returns the endpoints for the stream of writes: first those that the user gave, then the others that members which
// serve writes advertise, and the given ones whose members have left.
func (b *Book) Writes() (first, others []string) {
	for _, endpoint := range b.given {
		if !b.left(endpoint) {
			first = append(first, endpoint)
		}
	}
	for _, endpoint := range b.advertised() {
		if !b.amongGiven(endpoint) {
			others = append(others, endpoint)
		}
	}
	for _, endpoint := range b.given {
		if b.left(endpoint) {
			others = append(others, endpoint)
		}
	}
	return first, others
}

// Open returns the endpoints through which the members can be listed, beside connections that are open: all that are known,
// those that answered when they were asked last first. Learners are among them: the others may have left since.
func (b *Book) Open() []string {
	first, others := b.Writes()
	all := slices.Concat(first, others)
	for _, m := range b.members {
		for _, endpoint := range m.Endpoints {
			if !slices.ContainsFunc(all, func(known string) bool { return bare(known) == bare(endpoint) }) {
				all = append(all, endpoint)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y string) int {
		switch {
		case b.silent[x] == b.silent[y]:
			return 0
		case b.silent[y]:
			return -1
		}
		return 1
	})
	return all
}

// advertised returns the endpoints of the members that serve writes: no learners, but for those that a member has named as
// voters since. A list may be older than the configuration that is in force.
func (b *Book) advertised() []string {
	var all []string
	for _, m := range b.members {
		for _, endpoint := range m.Endpoints {
			if (!m.Learner || b.votes(m.ID)) && !slices.Contains(all, endpoint) {
				all = append(all, endpoint)
			}
		}
	}
	return all
}

func (b *Book) votes(id uint64) bool {
	return slices.Contains(b.view.Voters, id) || slices.Contains(b.said, id)
}

// resident is the member that is at an endpoint, by its answer or else by what members advertise; zero: unknown.
func (b *Book) resident(endpoint string) uint64 {
	if id := b.answered[endpoint]; id != 0 {
		return id
	}
	for _, m := range b.members {
		for _, other := range m.Endpoints {
			if bare(other) == bare(endpoint) {
				return m.ID
			}
		}
	}
	return 0
}

// left reports whether a member was at an endpoint that is none any more.
func (b *Book) left(endpoint string) bool {
	id := b.answered[endpoint]
	return b.whole && id != 0 && !b.has(id)
}

func (b *Book) has(id uint64) bool {
	return slices.ContainsFunc(b.members, func(m Place) bool { return m.ID == id })
}

// Settle notes, after a listing, which of the given endpoints are known by what members advertise: once their members leave,
// they count as left. It returns the endpoints that are to be asked who is there: the given ones, after something has
// happened, and the others if they have to serve in their place. Heard or Silent takes each answer.
func (b *Book) Settle() []string {
	if b.Stays {
		return nil
	}
	for _, endpoint := range b.given {
		if b.answered[endpoint] == 0 {
			if id := b.resident(endpoint); id != 0 {
				b.answered[endpoint] = id
			}
		}
	}
	var ask []string
	for _, endpoint := range b.given {
		if b.examine || b.moved && (b.left(endpoint) || b.silent[endpoint]) {
			ask = append(ask, endpoint)
		}
	}
	b.examine = false
	return ask
}

// Successors returns, after the given endpoints were asked, the advertised ones that are to be asked before reads may use them:
// none as long as the given ones serve.
func (b *Book) Successors() []string {
	lost := func(endpoint string) bool { return b.left(endpoint) || b.silent[endpoint] }
	b.moved = !b.Stays && (slices.ContainsFunc(b.given, b.left) || !slices.ContainsFunc(b.given, func(endpoint string) bool {
		return !lost(endpoint)
	}))
	if !b.moved {
		return nil
	}
	var ask []string
	for _, endpoint := range b.advertised() {
		if !b.amongGiven(endpoint) && (!b.has(b.answered[endpoint]) || b.silent[endpoint]) {
			ask = append(ask, endpoint)
		}
	}
	return ask
}

// Reads returns the endpoints for reads and watches: those that the user gave. If members that were there have left the
// cluster, or none of them answers, they are joined by those at which members that serve have answered; and no endpoint is
// asked where a member was that has left, because another cluster may be there by now.
func (b *Book) Reads() []string {
	if !b.moved {
		return slices.Clone(b.given)
	}
	var reads []string
	for _, endpoint := range b.given {
		if !b.left(endpoint) {
			reads = append(reads, endpoint)
		}
	}
	for _, endpoint := range b.advertised() {
		if !b.amongGiven(endpoint) && b.has(b.answered[endpoint]) && !b.silent[endpoint] {
			reads = append(reads, endpoint)
		}
	}
	if len(reads) == 0 {
		return slices.Clone(b.given)
	}
	return reads
}
