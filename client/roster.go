package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
)

const (
	// rosterInterval is how often the members are listed anew.
	rosterInterval = 30 * time.Second
	// rosterPatience bounds one listing.
	rosterPatience = 2 * time.Second
)

// roster is what the client knows of the cluster: who its members are, where, and who leads. It follows the members' own
// words. Streams go to the endpoints that the user gave, or to what members advertise if none of those answers; what goes to
// all voters at once needs this list, too.
type roster struct {
	given  func() []string
	lister clientv3.Cluster

	mu      sync.Mutex
	cluster uint64 // the first that answered; others are not ours
	leader  uint64
	term    uint64
	members []rosterMember
	listed  time.Time
	ground  ground            // of the latest term and configuration
	places  map[string]uint64 // endpoint -> who answered there last
}

// rosterMember is one member.
type rosterMember struct {
	id        uint64
	endpoints []string
	learner   bool
}

func newRoster(given func() []string, lister clientv3.Cluster) *roster {
	return &roster{given: given, lister: lister}
}

var errForeign = errors.New("quorate: the endpoint belongs to another cluster than those before it: mend the list of endpoints")

// note takes a member's word about the cluster.
func (r *roster) note(endpoint string, s *quoratepb.Standing) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cluster == 0 {
		r.cluster = s.Cluster
	}
	if r.cluster != s.Cluster {
		return errForeign
	}
	if s.Term > r.term || s.Term == r.term && s.Leader != 0 {
		r.leader, r.term = s.Leader, s.Term
	}
	if r.places == nil {
		r.places = map[string]uint64{}
	}
	r.places[endpoint] = s.Member
	on := footingOf(s.Footing)
	if s.Leader != 0 && !on.before(r.ground.footing) {
		r.ground = ground{footing: on, leader: s.Leader, voters: s.Voters, fast: s.Fast}
	}
	return nil
}

// footing returns what a proposer must know.
func (r *roster) footing() ground {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ground
}

// toMember returns where a member may be found: where it was, where nobody was met yet, and where it says.
func (r *roster) toMember(id uint64) []string {
	given := r.given()
	r.mu.Lock()
	defer r.mu.Unlock()
	var known, unknown []string
	for endpoint, member := range r.places {
		if member == id {
			known = append(known, endpoint)
		}
	}
	for _, endpoint := range given {
		if r.places[endpoint] == 0 {
			unknown = append(unknown, endpoint)
		}
	}
	all := append(known, unknown...)
	for _, m := range r.members {
		if m.id != id {
			continue
		}
		for _, endpoint := range m.endpoints {
			if !slices.Contains(all, endpoint) {
				all = append(all, endpoint)
			}
		}
	}
	return all
}

// refresh lists the members if that was not done lately.
func (r *roster) refresh(ctx context.Context) {
	r.mu.Lock()
	now := time.Now()
	due := r.lister != nil && now.Sub(r.listed) >= rosterInterval
	if due {
		r.listed = now
	}
	r.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rosterPatience)
	defer cancel()
	answer, err := r.lister.MemberList(ctx, clientv3.WithSerializable())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.listed = time.Time{}
		return
	}
	if r.cluster == 0 {
		r.cluster = answer.Header.GetClusterId()
	}
	if answer.Header.GetClusterId() != r.cluster {
		return
	}
	r.members = r.members[:0]
	for _, m := range answer.Members {
		r.members = append(r.members, rosterMember{id: m.ID, endpoints: m.ClientURLs, learner: m.IsLearner})
	}
}

// endpoints returns where to try: first what the user gave, then what members that serve writes advertise beside it.
func (r *roster) endpoints() (given, advertised []string) {
	given = r.given()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		for _, endpoint := range m.endpoints {
			if !m.learner && !slices.Contains(given, endpoint) && !slices.Contains(advertised, endpoint) {
				advertised = append(advertised, endpoint)
			}
		}
	}
	return given, advertised
}
