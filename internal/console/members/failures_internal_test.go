package members

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// voting is a cluster with these roles, all up; the first member leads.
func voting(joint bool, roles ...quoratepb.Role) *quoratepb.Cluster {
	c := &quoratepb.Cluster{Joint: joint, Settled: !joint, Leader: 1}
	for i, role := range roles {
		c.Members = append(c.Members, &quoratepb.Member{Id: uint64(i + 1), Role: role, Active: true, CaughtUp: true,
			Started: true,
			Leader:  i == 0})
	}
	return c
}

const (
	voter    = quoratepb.Role_ROLE_VOTER
	learner  = quoratepb.Role_ROLE_LEARNER
	incoming = quoratepb.Role_ROLE_INCOMING
	outgoing = quoratepb.Role_ROLE_OUTGOING
	demoting = quoratepb.Role_ROLE_DEMOTING
)

// Ensure, for every set of members that fail, that writes go on exactly if the membership's own measure says so, and that as
// many more may fail.
func TestWeigh_measure(t *testing.T) {
	for name, c := range map[string]*quoratepb.Cluster{
		"one": voting(false, voter), "three": voting(false, voter, voter, voter),
		"four and a learner":   voting(false, voter, voter, voter, voter, learner),
		"five":                 voting(false, voter, voter, voter, voter, voter),
		"replaced":             voting(true, voter, voter, outgoing, incoming),
		"two of five replaced": voting(true, voter, voter, voter, outgoing, outgoing, incoming, incoming),
		"five become three":    voting(true, voter, voter, voter, demoting, outgoing),
		"all replaced":         voting(true, outgoing, outgoing, outgoing, incoming, incoming, incoming),
	} {
		config := &consensus.Config{}
		for _, m := range c.Members {
			id := consensus.MemberID(m.Id)
			if m.Role == voter || m.Role == incoming {
				config.Voters = append(config.Voters, id)
			}
			if c.Joint && (m.Role == voter || m.Role == outgoing || m.Role == demoting) {
				config.Outgoing = append(config.Outgoing, id)
			}
		}
		for set := range 1 << len(c.Members) {
			dead := map[uint64]bool{}
			var fit []consensus.MemberID
			for i, m := range c.Members {
				if set>>i&1 == 1 {
					dead[m.Id] = true
				} else {
					fit = append(fit, consensus.MemberID(m.Id))
				}
			}
			want := membership.Measure(config, fit)
			effects, _ := weigh(c, dead)
			if got := effects[0].Word == "go on"; got != (want.Tolerates >= 0) {
				t.Errorf("%s without %v: writes %s, and the measure is %+v", name, dead, effects[0].Word, want)
			}
			if got := effects[1].Word == "go on"; got && (c.Joint || want.Active < want.Superquorum && want.Voters > 3) {
				t.Errorf("%s without %v: one round trip, and the measure is %+v", name, dead, want)
			}
			if left := effects[4].Word; want.Tolerates > 0 != (left != "none") {
				t.Errorf("%s without %v: %s more, and the measure is %+v", name, dead, left, want)
			}
		}
	}
}

// Ensure what is said beyond counting.
func TestWeigh_words(t *testing.T) {
	five := voting(false, voter, voter, voter, voter, voter)
	behind := voting(false, voter, voter, voter)
	behind.Members[1].CaughtUp = false
	unsettled := voting(false, voter, voter, voter)
	unsettled.Settled = false
	lost := voting(true, voter, voter, voter)
	unled := voting(false, voter, voter, voter)
	unled.Leader, unled.Members[0].Leader = 0, false
	for name, row := range map[string]struct {
		cluster *quoratepb.Cluster
		dead    map[uint64]bool
		at      int
		word    string
		why     string
	}{
		"the leader": {five, map[uint64]bool{1: true}, 0, "go on",
			"4 of 5 voters up, 3 needed; they wait until another leader is elected, for about an election timeout"},
		"two of five": {five, map[uint64]bool{2: true, 3: true}, 1, "stop",
			"3 of 5 up, a superquorum is 4: writes go by the leader, in two round trips"},
		"three of five": {five, map[uint64]bool{2: true, 3: true, 4: true}, 0, "stop",
			"2 of 5 voters up, 3 needed: until 1 more voter runs"},
		"all": {five, map[uint64]bool{1: true, 2: true, 3: true, 4: true, 5: true}, 3, "stop",
			"no member is up"},
		"one that lags": {behind, map[uint64]bool{3: true}, 0, "wait",
			"2 of 3 voters up, 2 needed, but some of them must catch up first"},
		"none of three": {behind, nil, 0, "go on", "3 of 3 voters up, 2 needed"},
		"a change": {unsettled, nil, 1, "stop",
			"a change of members is under way: writes go by the leader until it is settled"},
		"no leader": {unled, map[uint64]bool{2: true}, 0, "wait",
			"2 of 3 voters up, 2 needed, but no leader is known: one must be elected first"},
		"no set of old ones": {lost, nil, 0, "not known",
			"3 of 3 voters up, 2 needed, and a majority of the old set, which only the leader tells"},
	} {
		effects, _ := weigh(row.cluster, row.dead)
		if got := effects[row.at]; got.Word != row.word || got.Why != row.why {
			t.Errorf("%s: got %q, %q", name, got.Word, got.Why)
		}
	}
	if _, sets := weigh(lost, nil); len(sets) != 1 {
		t.Errorf("an old set that is not known is counted: %+v", sets)
	}
}
