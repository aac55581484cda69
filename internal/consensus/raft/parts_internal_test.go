package raft

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// historyOf returns the configurations of a member of a cluster that begins with config.
func historyOf(self consensus.MemberID, config consensus.Config) *configs.History {
	history := configs.New(self, consensus.StorageID{}, nil, rules.Set{})
	base := consensus.SnapshotMeta{
		Position: consensus.Position{Index: 1, Term: 1}, ConfigID: consensus.ConfigID{Index: 1, Term: 1}, Config: config,
	}
	history.Reset(&base, 1, 1)
	history.Revise()
	return &history
}

func threeVoters() consensus.Config {
	return consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}},
		Learners: []consensus.MemberID{4}}
}

// Ensure that the wait of a follower is drawn anew once it is cordoned, and that the wait of a leader, which ends when it steps
// down, is not.
func TestElection_delayCampaign(t *testing.T) {
	config := threeVoters()
	config.Members[1].Cordoned = true
	opts := Options{ID: 2, ElectionTicks: 10}
	for _, role := range []Role{Follower, PreCandidate, Candidate, Leader} {
		r := &Replica{opts: opts, clock: clock{now: 5}, configs: *historyOf(2, config), role: role, elect: election{campaignAt: 6}}
		if role == Leader {
			r.lead = &leader{Replica: r}
		}
		r.delayCampaign()
		if late := r.elect.campaignAt >= 5+cordonWait*10; late != (role != Leader) {
			t.Errorf("%v: it campaigns at %d", role, r.elect.campaignAt)
		}
	}
	r := &Replica{opts: opts, clock: clock{now: 5}, configs: *historyOf(2, threeVoters()), elect: election{campaignAt: 6}}
	if r.delayCampaign(); r.elect.campaignAt != 6 {
		t.Errorf("it is not cordoned, and campaigns at %d", r.elect.campaignAt)
	}
}

// Ensure that only voters' answers about the ends of their logs are kept: other members could fill the memory.
func TestForwards_handleLogQueryReply(t *testing.T) {
	for from, want := range map[consensus.MemberID]bool{3: true, 4: false, 9: false} {
		r := &Replica{configs: *historyOf(2, threeVoters())}
		r.forwards.logEnds.Ask(1, []consensus.MemberID{1, 2, 3})
		m := consensus.Message{Kind: consensus.MsgLogQueryReply, From: from, LogQuery: consensus.LogQuery{Query: 1}}
		if r.handleLogQueryReply(&m); r.forwards.logEnds.Answered() != want {
			t.Errorf("the answer of %v is kept: %t", from, !want)
		}
	}
}

// Ensure that proposers learn of each entry once it is acknowledged to the leader, also when an older acknowledgement comes
// late.
func TestInference_reportMatch(t *testing.T) {
	var entries []consensus.Entry
	for index := consensus.Index(2); index <= 5; index++ {
		entries = append(entries, consensus.Entry{Index: index, Term: 2, Kind: consensus.EntryCommand, Proposer: 3})
	}
	log, err := raftlog.Restore(consensus.Position{Index: 1, Term: 1}, entries, 1, 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r := &Replica{opts: Options{ID: 2}, hard: hardState{term: 2}, configs: *historyOf(2, threeVoters()), log: log, leader: 1}
	for _, step := range []struct {
		known consensus.Index
		want  int
	}{{3, 1}, {5, 1}, {4, 0}, {5, 0}} {
		r.reportMatch(step.known, false)
		sent := r.out.take().Send
		if len(sent) != step.want || step.want > 0 && (sent[0].To != 3 || sent[0].Match.Index != step.known) {
			t.Errorf("up to %d: %+v", step.known, sent)
		}
	}
}
