package lab

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Stories lists the scripts.
func Stories() []Story {
	all := slices.Concat(disasters(), protocolStories(), standstills())
	for i := range all {
		if b, err := findBreak(all[i].Break); err == nil {
			all[i].Rule = b.Demands
		}
	}
	return all
}

// disasters are stories in which something is lost for ever.
func disasters() []Story {
	return []Story{
		{
			Name: "two-leaders", Title: "a new leader changes the configuration too early (Ongaro, 2015)",
			About: []string{
				"1 begins to add 5 and is cut off. 2 is elected and begins to remove 1, before an entry of its own term",
				"has committed. {1,2,3,4,5} and {2,3,4} have majorities that do not meet: {1,4,5} and {2,3}.",
			},
			Break: "change-in-old-term", Expect: []Breach{BreachOverwritten, BreachIncomplete},
			voters: 4, learners: 1, play: playTwoLeaders,
		},
		{
			Name: "two-changes", Title: "a second change begins while the first is under way",
			About: []string{
				"1 is cut off with the new 4 and 5 and adds both, one after the other, without waiting.",
				"{1,4,5} are a majority of the five, and {2,3} one of the three that they know.",
			},
			Break: "two-changes", Expect: []Breach{BreachOverwritten, BreachIncomplete},
			voters: 3, learners: 2, play: playTwoChanges,
		},
		{
			Name: "removed-leader-counts-itself", Title: "a leader that removed itself still counts its own log",
			About: []string{
				"1 removes itself, and until that commits it leads {2,3,4}. With its own log and that of 2 it believes in a",
				"majority, and acknowledges a write. But 3 and 4 are the majority of the three.",
			},
			Break: "count-self", Expect: []Breach{BreachLostWrite, BreachOverwritten, BreachIncomplete},
			voters: 4, play: playCountSelf,
		},
		{
			Name: "union-of-joint", Title: "votes are counted over all members of a joint configuration together (CCF)",
			About: []string{
				"{1,2,3} is to become {1,4,5}. 1, 4 and 5 are three of the five, but only one of the three before:",
				"2 and 3 do not know of the change, and elect a leader too. Both get the same term.",
			},
			Break: "union-of-joint", Expect: []Breach{BreachTwoLeaders},
			voters: 3, learners: 2, play: playUnion,
		},
		{
			Name: "learner-counted", Title: "a write commits because learners hold it",
			About:  []string{"1 is cut off with two learners. 2 and 3 elect a leader that has never heard of the write."},
			Break:  "count-learners",
			Expect: []Breach{BreachLostWrite, BreachOverwritten, BreachIncomplete},
			voters: 3, learners: 2, play: playLearner,
		},
	}
}

// standstills are stories in which nothing is lost, but the cluster stands still.
func standstills() []Story {
	return []Story{
		{
			Name:  "etcd-12359",
			Title: "the survivors hold the change and do not know that it committed (etcd issue 12359)",
			About: []string{
				"Changes are in force when applied. 3 knows that its promotion has committed; 2, whose log is longer,",
				"does not. 3 cannot win, for 2 refuses a shorter log; and 2 counts {1,2}, where 1 is dead.",
			},
			Break: "votes-without-commit", Expect: []Breach{BreachUnavailable},
			voters: 2, learners: 1, play: playCommitInVotes,
		},
		{
			Name: "retired-early", Title: "members that leave are switched off as soon as the change has committed",
			About: []string{
				"With one entry for both sets, only the leader knows at first that it has committed. 4, 5 and 6 hold it,",
				"and for all they know they still need a majority of {1,2,3}.",
			},
			Break: "off-before-settled", Expect: []Breach{BreachUnavailable},
			voters: 3, learners: 3, play: playRetiredEarly,
		},
		{
			Name: "abort", Title: "the new majority cannot follow: the change is aborted",
			About: []string{
				"{1,2,3} is to become {1,4,5}, and the disks of 4 and 5 hang. Nothing commits in the joint configuration.",
				"As long as its second entry is not in any log, majorities of {1,2,3} decide in all that can be in use.",
			},
			Rule:  "while C(new) is not logged, the leader can go back to the configuration before",
			Break: noAbort, Expect: []Breach{BreachUnavailable},
			voters: 3, learners: 2, play: playAbort,
		},
	}
}

func playTwoLeaders(d *director) {
	d.split([]memberID{1, 5}, []memberID{2, 3, 4})
	d.change(1, consensus.ProtocolSingle, step(consensus.ChangePromote, 5))
	d.rest()
	d.campaign(2)
	d.split([]memberID{1, 5}, []memberID{2, 3}, []memberID{4})
	d.say("4 has voted for 2 and does not get its first entry")
	d.change(2, consensus.ProtocolSingle, step(consensus.ChangeRemove, 1))
	d.write(2)
	d.rest()
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.member(1).crash("1 crashes")
	d.member(1).restart()
	d.elect(1)
	d.write(1)
	d.rest()
	d.end()
}

func playTwoChanges(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.change(1, consensus.ProtocolSingle, step(consensus.ChangePromote, 4))
	d.change(1, consensus.ProtocolSingle, step(consensus.ChangePromote, 5))
	d.rest()
	d.write(1)
	d.rest()
	d.elect(2)
	d.write(2)
	d.rest()
	d.end()
}

func playCountSelf(d *director) {
	d.split([]memberID{1, 3, 4}, []memberID{2})
	d.change(1, consensus.ProtocolSingle, step(consensus.ChangeRemove, 1))
	d.moment(1.2)
	d.split([]memberID{1, 2}, []memberID{3, 4})
	d.say("3 and 4 hold the change, their acknowledgements do not arrive")
	d.write(1)
	d.rest()
	d.member(1).crash("1 crashes")
	d.elect(3)
	d.write(3)
	d.rest()
	d.end()
}

func playUnion(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.change(1, consensus.ProtocolJoint, step(consensus.ChangePromote, 4), step(consensus.ChangePromote, 5),
		step(consensus.ChangeRemove, 2), step(consensus.ChangeRemove, 3))
	d.moment(1.5)
	d.member(1).crash("1 crashes")
	d.member(1).restart()
	d.moment(1)
	d.elect(4)
	if d.member(4).status.Role == raft.Leader {
		d.write(4)
		d.rest()
	}
	d.elect(2)
	d.write(2)
	d.rest()
	d.end()
}

func playLearner(d *director) {
	d.split([]memberID{1, 4, 5}, []memberID{2, 3})
	d.write(1)
	d.rest()
	d.elect(2)
	d.write(2)
	d.rest()
	d.end()
}

func playCommitInVotes(d *director) {
	d.change(1, consensus.ProtocolApply, step(consensus.ChangePromote, 3))
	d.moment(1.12)
	d.split([]memberID{1, 2}, []memberID{3})
	d.write(1)
	d.heal()
	change := d.member(1).lastConfigIndex()
	d.runUntil(12*d.delay, func() bool { return d.member(1).status.Commit >= change })
	d.split([]memberID{1, 3}, []memberID{2})
	d.say("1 has told 3 that the change has committed, not 2")
	d.moment(2)
	d.member(1).switchOff("1 burns down")
	d.heal()
	d.tick(2*electionTicks, 2, 3)
	d.end()
}

func playRetiredEarly(d *director) {
	target := []memberID{4, 5, 6}
	var steps []consensus.ChangeStep
	for _, id := range target {
		steps = append(steps, step(consensus.ChangePromote, id), step(consensus.ChangeRemove, id-3))
	}
	d.operator.begin(consensus.ProtocolActivate, []request{{steps: steps, target: target, leaving: []memberID{1, 2, 3}}})
	d.rest()
	d.rest()
	d.tick(electionTicks, target...)
	d.end()
}

func playAbort(d *director) {
	d.member(4).disk.hang(true)
	d.member(5).disk.hang(true)
	d.say("the disks of 4 and 5 hang")
	d.change(1, consensus.ProtocolJoint, step(consensus.ChangePromote, 4), step(consensus.ChangePromote, 5),
		step(consensus.ChangeRemove, 2), step(consensus.ChangeRemove, 3))
	d.write(1)
	d.tick(electionTicks, 1, 2, 3, 4, 5)
	if d.safe {
		d.abort(1)
	}
	d.rest()
	d.end()
}
