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
	// listInterval is the time between two listings of the members.
	listInterval = 30 * time.Second
	// listPatience bounds one listing.
	listPatience = 2 * time.Second
)

// directory is what the client knows of the cluster, from what the members say: the members, their endpoints, and the
// leader. Streams go to the endpoints that the user gave, or to those that members advertise if none of the user's
// answers. Offers to all voters need the endpoints of all voters.
type directory struct {
	given  func() []string
	lister clientv3.Cluster

	mu      sync.Mutex
	cluster uint64 // of the first member that answered; endpoints of other clusters are refused
	leader  uint64
	term    uint64
	members []directoryMember
	listed  time.Time
	places  map[string]uint64 // endpoint -> member that answered there last
}

// directoryMember is one member.
type directoryMember struct {
	id        uint64
	endpoints []string
	learner   bool
}

func newDirectory(given func() []string, lister clientv3.Cluster) *directory {
	return &directory{given: given, lister: lister}
}

var errForeign = errors.New("quorate: the endpoint belongs to another cluster than those before it: mend the list of endpoints")

// note records what a member says of the cluster.
func (d *directory) note(endpoint string, s *quoratepb.MemberStatus) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cluster == 0 {
		d.cluster = s.Cluster
	}
	if d.cluster != s.Cluster {
		return errForeign
	}
	if s.Term > d.term || s.Term == d.term && s.Leader != 0 {
		d.leader, d.term = s.Leader, s.Term
	}
	if d.places == nil {
		d.places = map[string]uint64{}
	}
	d.places[endpoint] = s.Member
	return nil
}

// toMember returns the endpoints to try for a member: where it answered before, where no member has answered yet, and
// what it advertises.
func (d *directory) toMember(id uint64) []string {
	given := d.given()
	d.mu.Lock()
	defer d.mu.Unlock()
	var known, unknown []string
	for endpoint, member := range d.places {
		if member == id {
			known = append(known, endpoint)
		}
	}
	for _, endpoint := range given {
		if d.places[endpoint] == 0 {
			unknown = append(unknown, endpoint)
		}
	}
	all := append(known, unknown...)
	for _, m := range d.members {
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

// refresh lists the members if the last listing is older than listInterval.
func (d *directory) refresh(ctx context.Context) {
	d.mu.Lock()
	now := time.Now()
	due := d.lister != nil && now.Sub(d.listed) >= listInterval
	if due {
		d.listed = now
	}
	d.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	answer, err := d.lister.MemberList(ctx, clientv3.WithSerializable())
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.listed = time.Time{}
		return
	}
	if d.cluster == 0 {
		d.cluster = answer.Header.GetClusterId()
	}
	if answer.Header.GetClusterId() != d.cluster {
		return
	}
	d.members = d.members[:0]
	for _, m := range answer.Members {
		d.members = append(d.members, directoryMember{id: m.ID, endpoints: m.ClientURLs, learner: m.IsLearner})
	}
}

// endpoints returns the endpoints that the user gave, and the others that members which serve writes advertise.
func (d *directory) endpoints() (given, advertised []string) {
	given = d.given()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		for _, endpoint := range m.endpoints {
			if !m.learner && !slices.Contains(given, endpoint) && !slices.Contains(advertised, endpoint) {
				advertised = append(advertised, endpoint)
			}
		}
	}
	return given, advertised
}
