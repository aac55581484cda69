package members_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/internal/members"
)

func three() (*quoratepb.Cluster, *quoratepb.Collected) {
	c := &quoratepb.Cluster{ClusterId: 9, Leader: 1, Strength: &quoratepb.Strength{Voters: 3, Active: 3, Tolerates: 1}}
	all := &quoratepb.Collected{}
	for id := uint64(1); id <= 3; id++ {
		name := "m" + string(rune('0'+id))
		c.Members = append(c.Members, &quoratepb.Member{Id: id, Name: name, Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true,
			CaughtUp: true, Leader: id == 1})
		o := &quoratepb.Observation{MemberId: id, Name: name}
		for other := uint64(1); other <= 3; other++ {
			if other != id {
				o.Peers = append(o.Peers, &quoratepb.ObservedPeer{Id: other, Connected: true})
			}
		}
		all.Members = append(all.Members, &quoratepb.CollectedMember{Id: id, Name: name, Observation: o})
	}
	return c, all
}

// Ensure that a member which another voter does not reach blocks restarts: with the leader gone it would be no part of a quorum.
func TestApart(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(c *quoratepb.Cluster, all *quoratepb.Collected)
		want []string
	}{
		{"all reach all", func(*quoratepb.Cluster, *quoratepb.Collected) {}, nil},
		{"one way", func(_ *quoratepb.Cluster, all *quoratepb.Collected) {
			all.Members[1].Observation.Peers[1].Connected = false
		},
			[]string{"m2 has no connection to m3 yet"}},
		{"a peer that is not known", func(_ *quoratepb.Cluster, all *quoratepb.Collected) {
			all.Members[2].Observation.Peers = all.Members[2].Observation.Peers[:1]
		}, []string{"m3 has no connection to m2 yet"}},
		{"one does not tell", func(_ *quoratepb.Cluster, all *quoratepb.Collected) { all.Members[1].Observation = nil },
			[]string{"m2 did not say whom it reaches"}},
		{"a learner", func(c *quoratepb.Cluster, all *quoratepb.Collected) {
			c.Members[2].Role = quoratepb.Role_ROLE_LEARNER
			all.Members[2].Observation, all.Members[1].Observation.Peers[1].Connected = nil, false
		}, nil},
	} {
		c, all := three()
		row.set(c, all)
		if got := members.Apart(c, all); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		v := members.View{Described: c, Apart: members.Apart(c, all)}
		if got := v.Cluster().Blockers; len(got) != len(row.want) {
			t.Errorf("%s: blockers %q", row.name, got)
		}
	}
}

// Ensure that decisions see members, jobs and findings as they are.
func TestView_Cluster(t *testing.T) {
	c, _ := three()
	c.Members[2].Active, c.Members[2].SilentMs = false, 4000
	c.Members = append(c.Members, &quoratepb.Member{Id: 4, Role: quoratepb.Role_ROLE_JOINING})
	v := members.View{Described: c, Jobs: []*quoratepb.Job{{Id: 7, Newcomers: []uint64{4},
		Spec: &quoratepb.ChangeSpec{Kind: "replace", Add: []*quoratepb.Newcomer{{Name: "m4"}}, Remove: []uint64{3}}}},
		Findings: []doctor.Finding{{Code: doctor.DiskSlow, Severity: doctor.SlowerThanIs, Sentence: "slow"},
			{Code: doctor.TwoVoters, Severity: doctor.NextFailure, Sentence: "two"}, {Code: doctor.DiskLost, Members: []string{"m2"},
				Severity: doctor.NextFailure}}}
	got := v.Cluster()
	byName := map[string]int{}
	for i := range got.Members {
		byName[got.Members[i].Name] = i
	}
	at := func(name string) any { return got.Members[byName[name]] }
	if len(byName) != 4 || !got.Members[byName["m4"]].Joining || !got.Members[byName["m2"]].DiskLost ||
		got.Members[byName["m3"]].Silent != 4*time.Second || !got.Members[byName["m1"]].Leader || got.Members[3].Name != "m1" {
		t.Errorf("members: %+v %+v", got.Members, at("m4"))
	}
	if job := got.Jobs[0]; job.ID != 7 || job.Adds[0] != "m4" || job.Removes[0] != 3 {
		t.Errorf("job: %+v", job)
	}
	c.Settled = true
	if !got.Unsettled || v.Cluster().Unsettled {
		t.Errorf("a change that is not settled: %v, and then %v", got.Unsettled, v.Cluster().Unsettled)
	}
	text := strings.Join(got.Blockers, "|")
	if !strings.Contains(text, "slow") || strings.Contains(text, "two") {
		t.Errorf("blockers: a finding that a build may cause counts, and no other: %q", text)
	}
}
